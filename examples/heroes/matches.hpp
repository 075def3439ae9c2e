// Made-up matches of five heroes against five, from a model whose truth is known.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <span>

#include <wengert/base/random.hpp>
#include <wengert/data/dataset.hpp>

namespace example {

/// Who wins. Hero i has a strength a_i, and two traits t_i that make the synergy s_ij = 0.4 * (t_i . t_j) /
/// sqrt(2) of each pair that plays in one team. Strengths are normal with deviation 0.5, traits with
/// deviation 1. With
///   score(team) = sum over heroes of a_i + sum over pairs of s_ij,
///   P(the first team wins) = 1 / (1 + exp(score(second) - score(first))).
class MatchModel {
 public:
  static constexpr std::size_t heroes = 100, team = 5;
  using Match = std::array<std::int64_t, 2 * team>;  // the first team's heroes, then the second's

  explicit MatchModel(wengert::Generator& gen) {
    gen.fill_normal(strength_.data(), strength_.size(), 0.0, 0.5);
    gen.fill_normal(traits_.data(), traits_.size(), 0.0, std::sqrt(0.4 / std::sqrt(2)));
  }

  /// The probability that the first team wins.
  double win(const Match& match) const {
    const std::span<const std::int64_t> all(match);
    return 1 / (1 + std::exp(score(all.last<team>()) - score(all.first<team>())));
  }

  /// Ten different heroes, each as likely as any other.
  static Match draw(wengert::Generator& gen) {
    std::array<std::int64_t, heroes> all{};
    std::iota(all.begin(), all.end(), 0);
    Match match{};
    for (std::size_t i = 0; i < match.size(); ++i) {
      std::swap(all[i], all[i + gen.below(heroes - i)]);
      match[i] = all[i];
    }
    return match;
  }

 private:
  double synergy(std::size_t i, std::size_t j) const {
    return traits_[2 * i] * traits_[2 * j] + traits_[2 * i + 1] * traits_[2 * j + 1];
  }
  double score(std::span<const std::int64_t, team> players) const {
    double sum = 0;
    for (std::size_t a = 0; a < team; ++a) {
      const auto i = static_cast<std::size_t>(players[a]);
      sum += strength_[i];
      for (std::size_t b = 0; b < a; ++b) sum += synergy(i, static_cast<std::size_t>(players[b]));
    }
    return sum;
  }

  std::array<double, heroes> strength_;
  std::array<double, 2 * heroes> traits_;  // scaled so that their products are synergies
};

/// Heroes (N, 10), whether the first team won (N, 1), and how often a forecast that knows the model is right
/// on these very matches: no forecast can be expected to do better.
struct Matches {
  wengert::data::Dataset<std::int64_t, float> data;
  double best_accuracy;
};

inline Matches draw_matches(const MatchModel& model, wengert::Index n, wengert::Generator gen) {
  constexpr auto width = static_cast<wengert::Index>(MatchModel::Match().size());
  wengert::Tensor<std::int64_t> heroes({n, width});
  wengert::Tensor<float> won({n, 1});
  wengert::Index right = 0;
  for (wengert::Index k = 0; k < n; ++k) {
    const MatchModel::Match match = MatchModel::draw(gen);
    const double p = model.win(match);
    const bool first_won = gen.uniform() < p;
    std::copy(match.begin(), match.end(), heroes.fresh_data() + k * width);
    won.fresh_data()[k] = first_won ? 1.0f : 0.0f;
    right += (p > 0.5) == first_won ? 1 : 0;
  }
  return {{heroes, won}, static_cast<double>(right) / static_cast<double>(n)};
}

}  // namespace example

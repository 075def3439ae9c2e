// Learns who wins a match of five heroes against five, and tells how far from the best attainable it stays.
#include <cinttypes>
#include <cstdio>
#include <exception>

#include <CLI/CLI.hpp>

#include <wengert/wengert.hpp>

#include "../common/checksum.hpp"
#include "../common/time_table.hpp"
#include "../common/training_log.hpp"
#include "matches.hpp"

namespace wg = wengert;
using example::Phase;

namespace {

/// Each hero becomes 32 numbers, each team of five 128, both teams 128, and these one logit.
struct Forecast : wg::nn::Module<Forecast> {
  wg::nn::Embedding<float> hero;
  wg::nn::Linear<float> team;
  wg::nn::BatchNorm1d<float> team_norm{128};
  wg::nn::Linear<float> match;
  wg::nn::BatchNorm1d<float> match_norm{128};
  wg::nn::Linear<float> out;

  explicit Forecast(wg::Generator& gen)
      : hero(wg::Index{example::MatchModel::heroes}, 32, gen),
        team(160, 128, gen, {.bias = false}),
        match(256, 128, gen, {.bias = false}),
        out(128, 1, gen) {}

  void members(auto& list) {
    list("hero", hero, "team", team, "team_norm", team_norm, "match", match, "match_norm", match_norm, "out",
         out);
  }

  wg::Tensor<float> operator()(const wg::Tensor<std::int64_t>& heroes) {  // (B, 10)
    const auto teams = reshape(hero(heroes), {heroes.dim(0), 2, 160});    // (B, 10, 32) -> (B, 2, 160)
    const auto both = flatten(tanh(team_norm(team(teams))), 1);           // (B, 2, 128) -> (B, 256)
    return out(tanh(match_norm(match(both))));                            // (B, 1): logits
  }
};

/// Loss and accuracy on a data set, outside the tape, by batch norm's running statistics.
example::Score test(Forecast& model, const wg::data::Dataset<std::int64_t, float>& data) {
  const wg::NoGrad no_grad;
  constexpr wg::Index batch = 1000;
  double loss = 0;
  wg::Index right = 0;
  model.eval();
  for (wg::Index i = 0; i < data.size(); i += batch) {
    const auto [x, y] = data.range(i, std::min(i + batch, data.size()));
    const wg::Tensor<float> logits = model(x);
    loss += wg::bce_with_logits(logits, y, {.reduction = wg::Reduction::sum}).item();
    right += wg::sum(wg::cast<wg::Index>((logits > 0) == wg::cast<wg::Byte>(y))).item();
  }
  model.train();
  const auto n = static_cast<double>(data.size());
  return {loss / n, static_cast<double>(right) / n};
}

int run(wg::Index matches, const example::RunOptions& options) {
  wg::set_num_threads(options.threads);
  wg::Generator gen(options.seed);
  const example::MatchModel truth(gen);
  const example::Matches train = draw_matches(truth, matches, gen.split(1));
  const example::Matches unseen = draw_matches(truth, 50'000, gen.split(2));

  Forecast model(gen);
  wg::optim::AdamW<float> opt(model.parameters(), {.lr = options.lr});
  wg::GradStore grads(model.parameters());
  wg::data::Loader loader(train.data, {.batch = options.batch, .drop_last = true, .seed = options.seed});
  if (loader.batches() == 0)
    wg::fail<wg::ValueError>("--batch", "there are fewer matches than a batch holds; matches are ", matches,
                             ", batch is ", options.batch, "; expected --matches >= --batch");
  const wg::optim::CosineSchedule schedule({.lr = options.lr, .steps = options.epochs * loader.batches()});
  if (!options.quiet) {
    std::puts(model.summary(unseen.data.range(0, 1).x).c_str());
    std::printf("%s, %d threads; %lld matches to train on, %lld to test on\n", wg::simd_name(),
                options.threads, static_cast<long long>(train.data.size()),
                static_cast<long long>(unseen.data.size()));
    std::printf("whoever knows the true probabilities is right in %.2f %% of the test matches\n\n",
                100 * unseen.best_accuracy);
  }

  example::TrainingLog log("heroes", options, loader.batches() * options.batch, "matches",
                           unseen.best_accuracy);
  example::TimeTable times;
  example::Score score;
  while (log.begin_epoch()) {
    times.start();
    for (const auto& [x, y] : loader) {
      times.lap(Phase::data);
      const wg::Tensor<float> loss = wg::bce_with_logits(model(x), y);
      times.lap(Phase::forward);
      wg::backward(loss, grads);
      times.lap(Phase::backward);
      opt.set_lr(schedule(log.steps()));
      opt.step(grads);
      grads.zero();
      times.lap(Phase::optimizer);
      if (!log.step(loss.item(), x.dim(0), opt.lr())) break;
      times.lap(Phase::rest);
    }
    score = test(model, unseen.data);
    log.end_epoch(score);
    times.lap(Phase::rest);
  }

  if (!options.quiet) std::printf("\n%s\n", times.text(log.steps()).c_str());
  std::printf("test accuracy: best attainable %.2f %%, reached %.2f %%, gap %.2f points\n",
              100 * unseen.best_accuracy, 100 * score.accuracy,
              100 * (unseen.best_accuracy - score.accuracy));
  std::printf("checksum of the weights: %016" PRIx64 "\n", example::checksum(model.state()));
  return log.finish();
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Learns who wins made-up matches of five heroes against five, with AdamW."};
  wg::Index matches = 400'000;
  example::RunOptions options;
  options.epochs = 8;
  options.batch = 512;
  options.lr = 0.01;
  options.csv = "heroes.csv";
  options.plot = "heroes.png";
  app.add_option("--matches", matches, "matches to train on")
      ->check(CLI::Range(wg::Index{2}, wg::Index{100'000'000}).description(""))
      ->capture_default_str();
  options.add_to(app);
  CLI11_PARSE(app, argc, argv);
  try {
    return run(matches, options);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "heroes: %s\n", e.what());
    return 1;
  }
}

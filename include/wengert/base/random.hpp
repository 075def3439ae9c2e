// Random numbers that are the same on every platform, compiler, instruction set and number of threads:
// Philox4x32-10 by counter, and transformations made only of exactly rounded steps. Floor: base.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include <wengert/base/error.hpp>
#include <wengert/base/list.hpp>
#include <wengert/base/scalar.hpp>

namespace wengert::inline WENGERT_ISA {

namespace detail {

inline constexpr std::uint32_t philox_weyl[2] = {0x9E3779B9u,
                                                 0xBB67AE85u};  // added to the key after each round

constexpr void philox_round(std::uint32_t& c0, std::uint32_t& c1, std::uint32_t& c2, std::uint32_t& c3,
                            std::uint32_t k0, std::uint32_t k1) noexcept {
  const std::uint64_t p = std::uint64_t{0xD2511F53u} * c0, q = std::uint64_t{0xCD9E8D57u} * c2;
  c0 = static_cast<std::uint32_t>(q >> 32) ^ c1 ^ k0;
  c1 = static_cast<std::uint32_t>(q);
  c2 = static_cast<std::uint32_t>(p >> 32) ^ c3 ^ k1;
  c3 = static_cast<std::uint32_t>(p);
}

}  // namespace detail

/// The counter-based generator Philox4x32-10 of Salmon, Moraes, Dror and Shaw (2011): four random words for
/// each `counter` under `key`.
constexpr std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter,
                                              std::array<std::uint32_t, 2> key) noexcept {
  auto [c0, c1, c2, c3] = counter;
  auto [k0, k1] = key;
  for (int round = 0; round < 10; ++round) {
    detail::philox_round(c0, c1, c2, c3, k0, k1);
    k0 += detail::philox_weyl[0];
    k1 += detail::philox_weyl[1];
  }
  return {c0, c1, c2, c3};
}

namespace detail {

// Blocks that a bulk fill makes at a time: constant, so that the loops vectorise.
inline constexpr std::size_t fill_blocks = 16;
using FillWords = std::array<std::uint32_t, 4 * fill_blocks>;

// Two standard normals (Box and Muller) from the four words of a block. Every product is either exact, or
// enters an explicit fma or another product, so no compiler can contract it differently: same bits with any
// flags.
inline std::pair<double, double> normal_pair(const std::uint32_t* w) noexcept {
  constexpr std::uint64_t one = 0x3FF0000000000000u, sqrt_half = 0x3FE6A09E667F3BCDu,
                          exponent = std::uint64_t{0xFFF} << 52;
  const std::uint64_t a = w[0] | std::uint64_t{w[1]} << 32, b = w[2] | std::uint64_t{w[3]} << 32;
  // u in (0, 1], a multiple of 2^-52; u = 2^e m with m in [sqrt(1/2), sqrt(2)).
  const double u = 2.0 - std::bit_cast<double>(one | a >> 12);
  const std::uint64_t shifted = std::bit_cast<std::uint64_t>(u) - sqrt_half;
  const double m = std::bit_cast<double>(std::bit_cast<std::uint64_t>(u) - (shifted & exponent));
  // e as a double: its 12 bits, biased, in the low mantissa of 2^52.
  const double e =
      std::bit_cast<double>(0x4330000000000000u | (shifted + (std::uint64_t{1024} << 52)) >> 52) -
      (4503599627370496.0 + 1024.0);
  // log(m) = 2 atanh(s)
  const double s = (m - 1.0) / (m + 1.0), z = s * s;
  double l = 0.14795869327095823;
  l = std::fma(l, z, 0.15314059164347146);
  l = std::fma(l, z, 0.18183563960849333);
  l = std::fma(l, z, 0.22222198580938826);
  l = std::fma(l, z, 0.28571428742302207);
  l = std::fma(l, z, 0.39999999999415131);
  l = std::fma(l, z, 0.66666666666667340);
  const double log_m = std::fma(s * z, l, s + s);
  const double r = std::sqrt(-2.0 * std::fma(e, 0.69314718055994531, log_m));
  // An angle in [-pi/4, pi/4) and a quadrant.
  const double t = (std::bit_cast<double>(one | b >> 12) - 1.5) * 1.5707963267948966, y = t * t;
  double sn = 1.5896828118663948e-10;
  sn = std::fma(sn, y, -2.5050758657019634e-08);
  sn = std::fma(sn, y, 2.7557313695254564e-06);
  sn = std::fma(sn, y, -0.00019841269829817048);
  sn = std::fma(sn, y, 0.0083333333333224253);
  sn = std::fma(sn, y, -0.16666666666666632);
  sn = std::fma(sn, t * y, t);
  double cs = -1.1354521256676416e-11;
  cs = std::fma(cs, y, 2.0875608665867084e-09);
  cs = std::fma(cs, y, -2.7557313339539028e-07);
  cs = std::fma(cs, y, 2.4801587285011053e-05);
  cs = std::fma(cs, y, -0.0013888888888863914);
  cs = std::fma(cs, y, 0.041666666666666491);
  cs = std::fma(cs, y, -0.5);
  cs = std::fma(cs, y, 1.0);
  // A quarter turn swaps the two; the other bit turns by half.
  const bool quarter = (b & 1) != 0;
  const std::uint64_t half = (b & 2) << 62;
  const double first = std::bit_cast<double>(std::bit_cast<std::uint64_t>(quarter ? sn : cs) ^ half);
  const double second = std::bit_cast<double>(std::bit_cast<std::uint64_t>(quarter ? cs : sn) ^ half);
  return {r * first, r * second};
}

template <std::floating_point T>
constexpr std::size_t words_of_uniform = std::same_as<T, float> ? 1 : 2;

// In [0, 1), exact: 24 bits of one word, or 53 bits of two.
template <std::floating_point T>
T unit(const std::uint32_t* w) noexcept {
  if constexpr (std::same_as<T, float>)
    return static_cast<float>(static_cast<std::int32_t>(w[0] >> 8)) * 0x1p-24f;
  else
    return static_cast<double>(static_cast<std::int64_t>((w[0] | std::uint64_t{w[1]} << 32) >> 11)) * 0x1p-53;
}

}  // namespace detail

class Generator;

/// Remembers where each generator stood before its first draw in a scope, so that `checkpoint` can compute
/// the same numbers again. The generators must outlive the journal.
class RandomJournal {
 public:
  RandomJournal() = default;

  /// While alive, draws of this thread are noted in the journal and in those of enclosing scopes.
  class Scope {
   public:
    explicit Scope(RandomJournal& journal) noexcept : before_(std::exchange(active_, &journal)) {
      journal.parent_ = before_;
    }
    ~Scope() {
      active_->parent_ = nullptr;
      active_ = before_;
    }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    RandomJournal* before_;
  };

  /// While alive, the noted generators stand where they stood before; afterwards where they stood when it
  /// began. No journal of an enclosing scope is active meanwhile.
  class Replay {
   public:
    explicit Replay(const RandomJournal& journal);
    ~Replay();
    Replay(const Replay&) = delete;
    Replay& operator=(const Replay&) = delete;

   private:
    detail::List<std::pair<Generator*, std::uint64_t>> later_;
    RandomJournal* before_;
  };

  /// Called by a generator before it draws.
  void note(Generator& generator);
  /// The journal of the innermost scope of this thread, or null.
  static RandomJournal* active() noexcept { return active_; }
  /// Generators noted, each with its counter before its first draw.
  std::span<const std::pair<Generator*, std::uint64_t>> entries() const noexcept {
    return {entries_.data(), entries_.size()};
  }
  void clear() noexcept { entries_.clear(); }

 private:
  static inline thread_local RandomJournal* active_ = nullptr;
  detail::List<std::pair<Generator*, std::uint64_t>> entries_;
  RandomJournal* parent_ = nullptr;
};

/// A random generator, passed explicitly and never global. Its whole state is (seed, counter), so it can be
/// saved and restored; the counter is the number of 32-bit words drawn. Bulk fills start at the next multiple
/// of 4, and element i of a fill depends only on the seed, that counter and i. One owner at a time.
class Generator {
 public:
  explicit Generator(std::uint64_t seed) noexcept : seed_(seed) {}

  std::uint64_t seed() const noexcept { return seed_; }
  std::uint64_t counter() const noexcept { return counter_; }
  void set_counter(std::uint64_t counter) noexcept { counter_ = counter; }

  /// An independent generator for `stream`; draws nothing, and depends only on the seed and `stream`.
  Generator split(std::uint64_t stream) const noexcept {
    const auto w = philox({low(stream), high(stream), 0x73706C69u, 0x74u}, key());  // a part no draw reaches
    return Generator(w[0] | std::uint64_t{w[1]} << 32);
  }

  /// 32 random bits.
  std::uint32_t next() {
    note();
    return word();
  }
  /// A whole number in 0 .. n - 1, each equally likely. Throws ValueError when n is 0.
  std::uint64_t below(std::uint64_t n) {
    if (n == 0) fail<ValueError>("below", "no number is below 0; n is 0; expected n >= 1");
    note();
    // Draw as many bits as n needs and try again when the number is too large: at most two tries on average.
    const int bits = 64 - std::countl_zero(n - 1);
    for (;;) {
      std::uint64_t x = word();
      if (bits > 32) x |= std::uint64_t{word()} << 32;
      if (bits < 64) x &= (std::uint64_t{1} << bits) - 1;
      if (x < n) return x;
    }
  }
  /// Uniform in [0, 1): a multiple of 2^-24 for float (one word), of 2^-53 for double (two words).
  template <std::floating_point T = double>
  T uniform() {
    note();
    std::uint32_t w[2] = {word(), 0};
    if constexpr (detail::words_of_uniform<T> == 2) w[1] = word();
    return detail::unit<T>(w);
  }
  /// Standard normal: the first element that `fill_normal` would give.
  template <std::floating_point T = double>
  T normal() {
    T y;
    fill_normal(&y, 1, T(0), T(1));
    return y;
  }

  /// n numbers uniform in [lo, hi). Throws ValueError unless lo < hi are finite.
  template <std::floating_point T>
  void fill_uniform(T* p, std::size_t n, T lo, T hi) {
    if (!(lo < hi) || !std::isfinite(hi - lo))
      fail<ValueError>("fill_uniform", "bad interval; lo is ", lo, ", hi is ", hi,
                       "; expected finite lo < hi");
    const T width = hi - lo, last = std::nextafter(hi, lo);
    fill_chunks<detail::words_of_uniform<T>>(p, n, [=](const std::uint32_t* w, T* to, std::size_t count) {
      for (std::size_t i = 0; i < count; ++i) {
        T y;
        if constexpr (std::same_as<T, float>)  // the product is exact in double
          y = static_cast<float>(double{lo} + double{width} * double{detail::unit<float>(w + i)});
        else
          y = std::fma(detail::unit<double>(w + 2 * i), width, lo);
        to[i] = y < hi ? y : last;
      }
    });
  }
  /// n normal numbers of the given mean and standard deviation, two from each block.
  template <std::floating_point T>
  void fill_normal(T* p, std::size_t n, T mean, T std) {
    fill_chunks<2>(p, n, [=](const std::uint32_t* w, T* to, std::size_t count) {
      double z[2 * detail::fill_blocks];
      for (std::size_t i = 0; i < detail::fill_blocks; ++i) {
        const auto [first, second] = detail::normal_pair(w + 4 * i);
        z[2 * i] = first;
        z[2 * i + 1] = second;
      }
      for (std::size_t i = 0; i < count; ++i)
        to[i] = static_cast<T>(std::fma(z[i], double{std}, double{mean}));
    });
  }
  /// n bytes, each 1 with the given probability (to 2^-32) and else 0: dropout masks. Throws ValueError
  /// outside [0, 1].
  void fill_bernoulli(Byte* p, std::size_t n, double probability) {
    if (!(probability >= 0 && probability <= 1))
      fail<ValueError>("fill_bernoulli", "bad probability; got ", probability, "; expected 0..1");
    const auto bound = static_cast<std::uint64_t>(probability * 0x1p32);
    fill_chunks<1>(p, n, [=](const std::uint32_t* w, Byte* to, std::size_t count) {
      for (std::size_t i = 0; i < count; ++i) to[i] = w[i] < bound;
    });
  }
  /// Puts the elements in random order, each order equally likely (Fisher and Yates).
  template <class T>
  void shuffle(std::span<T> x) {
    for (std::size_t n = x.size(); n > 1; --n) std::swap(x[n - 1], x[below(n)]);
  }
  /// A fill of `n` elements of `words` words each hands chunks to `use(words, first element, elements)`.
  template <std::size_t words, class F>
  void fill(std::size_t n, F use) {
    note();
    counter_ = (counter_ + 3) / 4 * 4;
    constexpr std::size_t chunk = 4 * detail::fill_blocks / words;
    detail::FillWords w;
    for (std::size_t at = 0; at < n; at += chunk) {
      const std::size_t count = std::min(chunk, n - at);
      blocks(w, counter_ / 4);
      use(w.data(), at, count);
      counter_ += (words * count + 3) / 4 * 4;
    }
  }
  /// The same into an array: `make(words, to, elements)` makes the elements of a chunk, always as many, so
  /// that its loops vectorise.
  template <std::size_t words, class T, class F>
  void fill_chunks(T* p, std::size_t n, F make) {
    fill<words>(n, [=](const std::uint32_t* w, std::size_t at, std::size_t count) {
      constexpr std::size_t chunk = 4 * detail::fill_blocks / words;
      T last[chunk];
      make(w, count == chunk ? p + at : last, chunk);
      if (count != chunk) std::copy_n(last, count, p + at);
    });
  }

 private:
  static constexpr std::uint32_t low(std::uint64_t x) noexcept { return static_cast<std::uint32_t>(x); }
  static constexpr std::uint32_t high(std::uint64_t x) noexcept {
    return static_cast<std::uint32_t>(x >> 32);
  }
  std::array<std::uint32_t, 2> key() const noexcept { return {low(seed_), high(seed_)}; }

  void note() {
    if (RandomJournal* journal = RandomJournal::active()) [[unlikely]]
      journal->note(*this);
  }
  std::uint32_t word() noexcept {
    const std::uint64_t block = counter_ / 4;
    if (block != block_at_) draw(block);
    return block_[counter_++ % 4];
  }
  [[gnu::noinline]] void draw(std::uint64_t block) noexcept {
    block_ = philox({low(block), high(block), 0, 0}, key());
    block_at_ = block;
  }
  // The words of consecutive blocks; round by round over all of them, so that the loops vectorise.
  [[gnu::noinline]] void blocks(detail::FillWords& w, std::uint64_t first) const noexcept {
    constexpr std::size_t n = detail::fill_blocks;
    std::uint32_t c[4][n];
    for (std::size_t i = 0; i < n; ++i) {
      c[0][i] = low(first + i);
      c[1][i] = high(first + i);
      c[2][i] = c[3][i] = 0;
    }
    auto [k0, k1] = key();
    for (int round = 0; round < 10; ++round) {
      for (std::size_t i = 0; i < n; ++i) detail::philox_round(c[0][i], c[1][i], c[2][i], c[3][i], k0, k1);
      k0 += detail::philox_weyl[0];
      k1 += detail::philox_weyl[1];
    }
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t j = 0; j < 4; ++j) w[4 * i + j] = c[j][i];
  }

  std::uint64_t seed_;
  std::uint64_t counter_ = 0;
  std::array<std::uint32_t, 4> block_{};
  std::uint64_t block_at_ = ~std::uint64_t{0};  // counter / 4 never is
};

inline void RandomJournal::note(Generator& generator) {
  for (RandomJournal* j = this; j != nullptr; j = j->parent_) {
    bool known = false;
    for (const auto& entry : j->entries_) known |= entry.first == &generator;
    if (!known) j->entries_.push_back({&generator, generator.counter()});
  }
}

inline RandomJournal::Replay::Replay(const RandomJournal& journal) {
  later_.reserve(journal.entries_.size());
  for (auto [generator, counter] : journal.entries_) {
    later_.push_back({generator, generator->counter()});
    generator->set_counter(counter);
  }
  before_ = std::exchange(active_, nullptr);
}

inline RandomJournal::Replay::~Replay() {
  active_ = before_;
  for (auto [generator, counter] : later_) generator->set_counter(counter);
}

}  // namespace wengert::inline WENGERT_ISA

// Reads IDX files, the format of MNIST and its kin, plain or gzip. The one header that needs zlib: link
// wengert::data. A file is hostile until proved otherwise. Floor: data.
#pragma once

#if !__has_include(<zlib.h>)
#error "wengert/data/idx.hpp needs zlib (Debian and Ubuntu: zlib1g-dev)"
#endif
#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>
#include <zlib.h>

#include <sys/stat.h>

#include <wengert/base/error.hpp>
#include <wengert/base/scalar.hpp>
#include <wengert/base/shape.hpp>

namespace wengert::inline WENGERT_ISA::data {

/// Element types of an IDX file; the values are the format's own codes.
enum class IdxType : std::uint8_t { u8 = 0x08, i8 = 0x09, i16 = 0x0B, i32 = 0x0C, f32 = 0x0D, f64 = 0x0E };

/// Bytes of one element; 0 for a code the format does not know.
constexpr std::size_t idx_size(IdxType type) noexcept {
  switch (type) {
    case IdxType::u8:
    case IdxType::i8:
      return 1;
    case IdxType::i16:
      return 2;
    case IdxType::i32:
    case IdxType::f32:
      return 4;
    case IdxType::f64:
      return 8;
  }
  return 0;
}

/// The IDX type that holds a `T`.
template <class T>
constexpr IdxType idx_type() noexcept {
  if constexpr (std::same_as<T, std::uint8_t>) return IdxType::u8;
  if constexpr (std::same_as<T, std::int8_t>) return IdxType::i8;
  if constexpr (std::same_as<T, std::int16_t>) return IdxType::i16;
  if constexpr (std::same_as<T, std::int32_t>) return IdxType::i32;
  if constexpr (std::same_as<T, float>) return IdxType::f32;
  if constexpr (std::same_as<T, double>) return IdxType::f64;
}

/// Name of an element type as dtype_name prints it, such as "uint8".
constexpr std::string_view idx_name(IdxType type) noexcept {
  switch (type) {
    case IdxType::u8:
      return dtype_name<std::uint8_t>();
    case IdxType::i8:
      return dtype_name<std::int8_t>();
    case IdxType::i16:
      return dtype_name<std::int16_t>();
    case IdxType::i32:
      return dtype_name<std::int32_t>();
    case IdxType::f32:
      return dtype_name<float>();
    case IdxType::f64:
      return dtype_name<double>();
  }
  return "unknown";
}

/// What an IDX file holds: row-major elements of one type, in this machine's byte order.
struct IdxArray {
  IdxType type = IdxType::u8;
  Shape shape;
  std::vector<std::byte> bytes;

  /// The elements. Throws ValueError when the file holds another type than `T`.
  template <class T>
  std::span<const T> values() const {
    if (type != idx_type<T>())
      fail<ValueError>("IdxArray::values", "element types differ; the file holds ", idx_name(type),
                       ", asked for ", dtype_name<T>(), "; expected the type of the file");
    return {reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T)};
  }
};

namespace detail {

template <class... P>
[[noreturn]] void idx_fail(const std::string& path, std::string_view fault, const P&... expectation) {
  fail<IoError>("read_idx", fault, "; path is ", path, "; expected ", expectation...);
}

/// A file open for reading; zlib passes bytes that are not gzip through unchanged.
class IdxFile {
 public:
  explicit IdxFile(const std::string& path) : path_(path) {
    struct stat info {};
    if (stat(path.c_str(), &info) != 0) cannot_open();
    if (S_ISDIR(info.st_mode)) idx_fail(path_, "path is a directory", "an IDX file, plain or gzip");
    if (S_ISREG(info.st_mode)) size_ = static_cast<Index>(info.st_size);
    if (size_ == 0) idx_fail(path_, "file is empty", "an IDX file, plain or gzip");
    file_.reset(gzopen(path.c_str(), "rb"));
    if (!file_) cannot_open();
  }

  /// Size of the file when it is known and not compressed, else -1. Asks only after a first read.
  Index plain_size() const { return gzdirect(file_.get()) ? size_ : -1; }

  /// Reads up to `n` bytes; fewer only at the end. Throws IoError when the compressed data is damaged.
  std::size_t read(std::byte* to, std::size_t n) {
    std::size_t done = 0;
    while (done < n) {
      const auto step = static_cast<unsigned>(std::min(n - done, max_step));
      const int got = gzread(file_.get(), to + done, step);
      int code = Z_OK;
      const char* what = gzerror(file_.get(), &code);
      if (code == Z_BUF_ERROR) idx_fail(path_, "compressed data ends early", "a complete gzip file");
      if (code == Z_ERRNO)
        idx_fail(path_, wengert::detail::text("cannot read the file (", std::strerror(errno), ")"),
                 "a readable file");
      if (got < 0) {
        std::string_view why = what;  // zlib puts the path in front
        if (why.starts_with(path_)) why.remove_prefix(std::min(path_.size() + 2, why.size()));
        idx_fail(path_, wengert::detail::text("compressed data is damaged (", why, ")"),
                 "an intact gzip file");
      }
      done += static_cast<std::size_t>(got);
      if (static_cast<unsigned>(got) < step) break;
    }
    return done;
  }

 private:
  struct Close {
    void operator()(gzFile_s* file) const noexcept { gzclose(file); }
  };
  static constexpr std::size_t max_step = std::size_t{1} << 30;

  [[noreturn]] void cannot_open() const {
    idx_fail(path_, wengert::detail::text("cannot open the file (", std::strerror(errno), ")"),
             "a readable IDX file");
  }

  const std::string& path_;
  std::unique_ptr<gzFile_s, Close> file_;
  Index size_ = -1;
};

/// Type and shape from the header.
inline void read_idx_header(IdxFile& file, const std::string& path, IdxArray& out) {
  std::array<std::byte, 4> magic{};
  std::size_t got = file.read(magic.data(), magic.size());
  if (got < magic.size())
    idx_fail(path, wengert::detail::text("header is truncated; the file holds ", got, " bytes"),
             "at least 4");
  if (magic[0] != std::byte{0} || magic[1] != std::byte{0})
    idx_fail(path, "not an IDX file; its first two bytes are not zero", "0 0, a type code and a rank");
  out.type = static_cast<IdxType>(magic[2]);
  if (idx_size(out.type) == 0)
    idx_fail(path, wengert::detail::text("unknown element type; code is ", std::to_integer<int>(magic[2])),
             "8 (uint8), 9 (int8), 11 (int16), 12 (int32), 13 (float32) or 14 (float64)");
  const int rank = std::to_integer<int>(magic[3]);
  if (rank < 1 || rank > max_rank)
    idx_fail(path, wengert::detail::text("rank ", rank, " is out of range"), "1..", max_rank);
  std::array<std::byte, 4 * max_rank> dims{};
  const std::size_t n = 4 * static_cast<std::size_t>(rank);
  got = file.read(dims.data(), n);
  if (got < n)
    idx_fail(
        path,
        wengert::detail::text("header is truncated; rank is ", rank, ", the file holds ", 4 + got, " bytes"),
        "at least ", 4 + n);
  for (std::size_t i = 0; i < n; i += 4) {
    Index d = 0;
    for (std::size_t k = 0; k < 4; ++k) d = d * 256 + std::to_integer<Index>(dims[i + k]);
    out.shape.push_back(d);
  }
}

/// Number of bytes the header promises.
inline Index idx_body_size(const std::string& path, const IdxArray& a) {
  if (std::find(a.shape.begin(), a.shape.end(), Index{0}) != a.shape.end()) return 0;
  Index n = static_cast<Index>(idx_size(a.type));
  for (Index d : a.shape)
    if (__builtin_mul_overflow(n, d, &n) || n > std::numeric_limits<Index>::max() / 2)
      idx_fail(path, wengert::detail::text("size overflows; shape is ", a.shape),
               "an array that fits memory");
  return n;
}

inline void idx_to_host_order(IdxArray& a) {
  const auto size = static_cast<std::ptrdiff_t>(idx_size(a.type));
  if (std::endian::native == std::endian::big || size == 1) return;
  for (auto p = a.bytes.begin(); p != a.bytes.end(); p += size) std::reverse(p, p + size);
}

}  // namespace detail

/// Reads the IDX file at `path`; gzip is recognised by its content, not by its name.
/// Memory grows with what the file really holds, never with what its header claims.
/// What follows a complete gzip stream and is none itself is ignored, as gzip does.
/// Throws IoError: file missing, unreadable, empty, truncated, with bytes left over, with a header that is no
/// IDX header, with a size that overflows, or with damaged compressed data.
inline IdxArray read_idx(const std::string& path) {
  IdxArray out;
  detail::IdxFile file(path);
  detail::read_idx_header(file, path, out);
  const Index body = detail::idx_body_size(path, out);
  const Index header = 4 + 4 * Index{out.shape.rank()};
  auto truncated = [&](Index got) {
    detail::idx_fail(path,
                     wengert::detail::text("data is truncated; shape is ", out.shape, ", type is ",
                                           idx_name(out.type), ", the file holds ", got, " bytes of data"),
                     body);
  };

  const auto want = static_cast<std::size_t>(body);
  std::size_t step = want;
  if (const Index size = file.plain_size(); size < 0)
    step = std::size_t{1} << 20;  // what is compressed, or not a regular file, has to prove its size
  else if (size - header < body)
    truncated(size - header);
  std::size_t have = 0;
  while (have < want) {
    step = std::min(std::max(step, have), want - have);
    out.bytes.resize(have + step);
    const std::size_t got = file.read(out.bytes.data() + have, step);
    have += got;
    if (got < step) truncated(static_cast<Index>(have));
  }
  std::byte extra{};
  if (file.read(&extra, 1) != 0)  // this read also makes zlib verify its checksum
    detail::idx_fail(
        path,
        wengert::detail::text("bytes are left over; shape is ", out.shape, ", type is ", idx_name(out.type)),
        body, " bytes of data");
  detail::idx_to_host_order(out);
  return out;
}

}  // namespace wengert::inline WENGERT_ISA::data

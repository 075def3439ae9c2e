// The binary files of CIFAR-10 as data sets. Pixels stay bytes, a quarter of the memory of float32; see
// data/augment.hpp for what makes numbers of them. Floor: data.
#pragma once

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>

#include <sys/stat.h>

#include <wengert/data/dataset.hpp>

namespace wengert::inline WENGERT_ISA::data {

/// Training and test set; images (N, 32, 32, 3) of bytes, labels (N) from 0 to 9.
struct Cifar10 {
  Dataset<Byte, std::int64_t> train, test;
};

/// What the labels mean.
inline constexpr std::array<std::string_view, 10> cifar10_names = {
    "airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"};

namespace detail {

/// A record of the files: a label, then 32 x 32 pixels of red, of green, of blue.
struct CifarRecord {
  static constexpr Index side = 32, pixels = side * side, channels = 3, bytes = 1 + channels * pixels;
};

[[noreturn]] inline void cifar_fail(const std::string& path, std::string_view fault,
                                    std::string_view expectation) {
  fail<IoError>("read_cifar10", fault, "; path is ", path, "; expected ", expectation);
}

/// The bytes of the file, which holds exactly `records` records.
inline Buffer read_cifar_records(const std::string& path, Index records) {
  using wengert::detail::text;
  const auto reason = [] { return std::string(" (") + std::strerror(errno) + ")"; };
  struct stat info {};
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"), std::fclose);
  if (!file || ::fstat(::fileno(file.get()), &info) != 0)
    cifar_fail(path, "cannot open the file" + reason(), "a readable CIFAR-10 file");
  const Index size = records * CifarRecord::bytes;
  if (!S_ISREG(info.st_mode)) cifar_fail(path, "not a regular file", "a readable CIFAR-10 file");
  if (info.st_size != size)
    cifar_fail(path, text("the file holds ", info.st_size, " bytes"),
               text(size, ", which are ", records, " records of ", CifarRecord::bytes));
  Buffer bytes(static_cast<std::size_t>(size));
  if (std::fread(bytes.bytes(), 1, static_cast<std::size_t>(size), file.get()) !=
      static_cast<std::size_t>(size))
    cifar_fail(path, "cannot read the file" + reason(), "a readable CIFAR-10 file");
  return bytes;
}

/// Samples of one file, from planes to pixels.
inline void read_cifar_file(const std::string& path, Index records, Byte* images, std::int64_t* labels) {
  using R = CifarRecord;
  const Buffer file = read_cifar_records(path, records);
  const Byte* const from = file.as<Byte>();
  for (Index i = 0; i < records; ++i) {
    labels[i] = from[i * R::bytes];
    if (labels[i] >= static_cast<std::int64_t>(cifar10_names.size()))
      cifar_fail(path, wengert::detail::text("label ", labels[i], " of record ", i, " is out of range"),
                 "0..9");
  }
  kernels::parallel_for(records, 16, [=](Index begin, Index end) {
    for (Index i = begin; i < end; ++i)
      for (Index c = 0; c < R::channels; ++c) {
        const Byte* const plane = from + i * R::bytes + 1 + c * R::pixels;
        Byte* const to = images + i * R::channels * R::pixels + c;
        for (Index p = 0; p < R::pixels; ++p) to[p * R::channels] = plane[p];
      }
  });
}

inline Dataset<Byte, std::int64_t> read_cifar_part(const std::string& folder, Index files, const char* name,
                                                   Index records) {
  using R = CifarRecord;
  Tensor<Byte> x({files * records, R::side, R::side, R::channels});
  Tensor<std::int64_t> y({files * records});
  for (Index f = 0; f < files; ++f) {
    const std::string number = files > 1 ? std::to_string(f + 1) : "";
    read_cifar_file(folder + "/" + name + number + ".bin", records,
                    x.fresh_data() + f * records * R::channels * R::pixels, y.fresh_data() + f * records);
  }
  return {x, y};
}

}  // namespace detail

/// Reads data_batch_1.bin to data_batch_5.bin and test_batch.bin, the "binary version" of CIFAR-10, from a
/// folder. Images become (N, 32, 32, 3): pixels of red, green and blue. `records` is the number of images in
/// each file, 10000 in the published ones. Throws IoError that names the file and its fault: missing,
/// unreadable, of another size, or with a label above 9; ValueError unless records >= 1.
inline Cifar10 read_cifar10(const std::string& folder, Index records = 10000) {
  constexpr Index most = 1 << 24;
  if (records < 1 || records > most)
    fail<ValueError>("read_cifar10", "records is ", records, "; expected 1..", most);
  return {detail::read_cifar_part(folder, 5, "data_batch_", records),
          detail::read_cifar_part(folder, 1, "test_batch", records)};
}

}  // namespace wengert::inline WENGERT_ISA::data

// Folders of four IDX files as MNIST and Fashion-MNIST come, as data sets. Needs zlib: link wengert::data.
// Floor: data.
#pragma once

#include <wengert/data/dataset.hpp>
#include <wengert/data/idx.hpp>

namespace wengert::inline WENGERT_ISA::data {

/// Training and test set; images (N, rows, columns) scaled to 0..1, labels (N) from 0.
template <Field T>
struct Mnist {
  Dataset<T, std::int64_t> train, test;
};

namespace detail {

/// `stem` or `stem`.gz in `folder`, whichever exists.
inline IdxArray read_idx_or_gz(const std::string& folder, const std::string& stem) {
  const std::string path = folder + "/" + stem;
  struct stat info {};
  return read_idx(::stat(path.c_str(), &info) == 0 ? path : path + ".gz");
}

template <Field T>
Dataset<T, std::int64_t> read_mnist_part(const std::string& folder, const std::string& part, Index classes) {
  const std::string image_stem = part + "-images-idx3-ubyte", label_stem = part + "-labels-idx1-ubyte";
  const IdxArray images = read_idx_or_gz(folder, image_stem), labels = read_idx_or_gz(folder, label_stem);
  if (images.type != IdxType::u8 || images.shape.rank() != 3)
    fail<IoError>("read_mnist", folder, "/", image_stem, " does not hold images; shape is ", images.shape,
                  "; expected bytes of rank 3");
  if (labels.type != IdxType::u8 || labels.shape.rank() != 1 || labels.shape[0] != images.shape[0])
    fail<IoError>("read_mnist", folder, "/", label_stem, " does not fit the images; images are ",
                  images.shape, ", labels are ", labels.shape, "; expected one byte an image");
  Tensor<T> x(images.shape);
  Tensor<std::int64_t> y(labels.shape);
  const auto* const pixels = reinterpret_cast<const std::uint8_t*>(images.bytes.data());
  T* const to = x.fresh_data();
  for (Index i = 0; i < x.size(); ++i) to[i] = T(static_cast<float>(pixels[i])) / T(255);
  for (Index i = 0; i < y.size(); ++i) {
    const auto label = std::to_integer<std::int64_t>(labels.bytes[static_cast<std::size_t>(i)]);
    if (label >= classes)
      fail<IoError>("read_mnist", "label ", label, " at position ", i, " of ", folder, "/", label_stem,
                    " is out of range; expected 0..", classes - 1);
    y.fresh_data()[i] = label;
  }
  return {x, y};
}

}  // namespace detail

/// Reads train-images-idx3-ubyte, train-labels-idx1-ubyte, t10k-images-idx3-ubyte and t10k-labels-idx1-ubyte
/// from a folder, each plain or with .gz. Throws IoError that names the file and its fault.
template <Field T>
Mnist<T> read_mnist(const std::string& folder, Index classes = 10) {
  return {detail::read_mnist_part<T>(folder, "train", classes),
          detail::read_mnist_part<T>(folder, "t10k", classes)};
}

}  // namespace wengert::inline WENGERT_ISA::data

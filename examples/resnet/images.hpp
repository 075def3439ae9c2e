// The images that the trainer learns from: Fashion-MNIST or CIFAR-10, as bytes.
#pragma once

#include <cmath>
#include <span>
#include <string>
#include <string_view>

#include <wengert/data/augment.hpp>
#include <wengert/data/cifar.hpp>

#include "../common/fashion_mnist.hpp"

namespace example {

using ByteImages = wengert::data::Dataset<wengert::Byte, std::int64_t>;

/// Two sets of images (N, H, W, C), and what training needs to know of them.
struct ImageSet {
  std::string name;
  ByteImages train, test;
  std::span<const std::string_view> classes;
  wengert::Index padding;                   // of random crops
  wengert::data::Normalization statistics;  // of the training images
};

/// Images (N, H, W) in 0..1, which were bytes, as bytes (N, H, W, 1).
inline ByteImages as_bytes(const wengert::data::Dataset<float, std::int64_t>& data) {
  wengert::Shape shape = data.x().shape();
  shape.push_back(1);
  wengert::Tensor<wengert::Byte> x(shape);
  const float* const from = data.x().data();
  wengert::Byte* const to = x.mutable_data();
  for (wengert::Index i = 0; i < x.size(); ++i)
    to[i] = static_cast<wengert::Byte>(std::lround(from[i] * 255));
  return {x, data.y()};
}

inline ImageSet load_fashion_images(const std::string& folder) {
  const wengert::data::Mnist<float> data = load_fashion_mnist(folder);
  ByteImages train = as_bytes(data.train);
  wengert::data::Normalization statistics = wengert::data::channel_statistics(train.x());
  return {"Fashion-MNIST",      std::move(train), as_bytes(data.test), fashion_mnist_names, 2,
          std::move(statistics)};
}

inline ImageSet load_cifar_images(const std::string& folder) {
  using wengert::IoError;
  try {
    const wengert::data::Cifar10 data = wengert::data::read_cifar10(folder);
    return {"CIFAR-10", data.train,
            data.test,  wengert::data::cifar10_names,
            4,          wengert::data::channel_statistics(data.train.x())};
  } catch (const IoError& e) {
    throw IoError(e.what() +
                  std::string("\n--cifar takes the folder of data_batch_1.bin to data_batch_5.bin and "
                              "test_batch.bin,\nthe \"binary version\" of CIFAR-10"));
  }
}

}  // namespace example

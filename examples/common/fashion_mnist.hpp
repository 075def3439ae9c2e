// Fashion-MNIST, or a message that says where to get it.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include <wengert/data/mnist.hpp>

namespace example {

inline constexpr const char* fashion_mnist_folder = "/usr/share/datasets/fashion-mnist";

/// What the labels mean.
inline constexpr std::array<std::string_view, 10> fashion_mnist_names = {
    "T-shirt", "trousers", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "boot"};

/// Images (N, 28, 28) in 0..1, labels (N). Throws IoError.
inline wengert::data::Mnist<float> load_fashion_mnist(const std::string& folder) {
  using wengert::IoError;
  try {
    wengert::data::Mnist<float> data = wengert::data::read_mnist<float>(folder);
    for (const auto* part : {&data.train, &data.test})
      if (part->size() == 0 || part->x().dim(1) != 28 || part->x().dim(2) != 28)
        wengert::fail<IoError>("read_mnist", "wrong images in ", folder, "; shape is ", part->x().shape(),
                               "; expected 28 x 28 pixels");
    return data;
  } catch (const IoError& e) {
    throw IoError(e.what() +
                  std::string("\nFashion-MNIST is the package dataset-fashion-mnist of Debian and Ubuntu "
                              "(apt install dataset-fashion-mnist);\n--data takes the folder of its four "
                              "files from anywhere else"));
  }
}

}  // namespace example

// read_mnist on folders made by hand: values, plain and gzip files, and each fault by its message.
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>
#include <zlib.h>

#include <gtest/gtest.h>

#include <wengert/data/mnist.hpp>

#include "support/errors.hpp"
#include "support/temp_dir.hpp"

namespace {

using wengert::IoError;
using wengert::data::read_mnist;

using Bytes = std::vector<unsigned char>;

Bytes idx(const std::vector<unsigned>& dims, const Bytes& body, unsigned char type = 8) {
  Bytes b{0, 0, type, static_cast<unsigned char>(dims.size())};
  for (const unsigned d : dims)
    for (int shift = 24; shift >= 0; shift -= 8) b.push_back(static_cast<unsigned char>(d >> shift));
  b.insert(b.end(), body.begin(), body.end());
  return b;
}

class MnistFolder : public testing::Test {
 protected:
  MnistFolder() {
    write("train-images-idx3-ubyte", idx({2, 1, 3}, {0, 51, 255, 102, 153, 204}));
    write("train-labels-idx1-ubyte", idx({2}, {9, 0}));
    write("t10k-images-idx3-ubyte", idx({1, 1, 3}, {255, 0, 51}));
    write("t10k-labels-idx1-ubyte", idx({1}, {3}));
  }

  void write(const std::string& name, const Bytes& bytes) const {
    std::ofstream(dir_ / name, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  }
  /// Replaces a plain file by a compressed one.
  void compress(const std::string& name, const Bytes& bytes) const {
    std::remove((dir_ / name).c_str());
    gzFile file = gzopen((dir_ / (name + ".gz")).c_str(), "wb");
    ASSERT_NE(file, nullptr);
    EXPECT_EQ(gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size())),
              static_cast<int>(bytes.size()));
    EXPECT_EQ(gzclose(file), Z_OK);
  }
  std::string fault() const {
    return message_of<IoError>([this] { read_mnist<float>(folder_); });
  }

  TempDir dir_;
  const std::string folder_ = dir_ / "";
  const std::string base_ = folder_ + "/";
};

TEST_F(MnistFolder, ScalesPixelsAndKeepsLabels) {
  const auto data = read_mnist<float>(folder_);
  EXPECT_EQ(data.train.x().shape(), (wengert::Shape{2, 1, 3}));
  const std::vector<float> pixels{0.0f, 0.2f, 1.0f, 0.4f, 0.6f, 0.8f};
  for (std::size_t i = 0; i < pixels.size(); ++i) EXPECT_FLOAT_EQ(data.train.x().to_vector()[i], pixels[i]);
  EXPECT_EQ(data.train.y().to_vector(), (std::vector<std::int64_t>{9, 0}));
  EXPECT_EQ(data.test.size(), 1);
  EXPECT_EQ(data.test.y().to_vector(), (std::vector<std::int64_t>{3}));
  EXPECT_DOUBLE_EQ(read_mnist<double>(folder_).test.x().to_vector()[2], 51.0 / 255);
}

TEST_F(MnistFolder, ReadsCompressedFilesBesidePlainOnes) {
  compress("train-images-idx3-ubyte", idx({2, 1, 3}, {255, 0, 0, 0, 0, 255}));
  compress("t10k-labels-idx1-ubyte", idx({1}, {7}));
  const auto data = read_mnist<float>(folder_);
  EXPECT_EQ(data.train.x().to_vector(), (std::vector<float>{1, 0, 0, 0, 0, 1}));
  EXPECT_EQ(data.test.y().at(0), 7);
}

TEST_F(MnistFolder, NamesTheFileThatIsMissing) {
  std::remove((dir_ / "t10k-images-idx3-ubyte").c_str());
  EXPECT_EQ(fault(), "read_idx: cannot open the file (No such file or directory); path is " + base_ +
                         "t10k-images-idx3-ubyte.gz; expected a readable IDX file");
  EXPECT_EQ(message_of<IoError>([] { read_mnist<float>("/nowhere"); }),
            "read_idx: cannot open the file (No such file or directory); path is "
            "/nowhere/train-images-idx3-ubyte.gz; expected a readable IDX file");
}

TEST_F(MnistFolder, PassesOnWhatTheReaderFound) {
  write("train-labels-idx1-ubyte", {0, 0, 8});
  EXPECT_EQ(fault(), "read_idx: header is truncated; the file holds 3 bytes; path is " + base_ +
                         "train-labels-idx1-ubyte; expected at least 4");
}

TEST_F(MnistFolder, RefusesFilesThatHoldNoImages) {
  write("train-images-idx3-ubyte", idx({2, 3}, {0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(fault(), "read_mnist: " + base_ +
                         "train-images-idx3-ubyte does not hold images; shape is (2, 3); "
                         "expected bytes of rank 3");
  write("train-images-idx3-ubyte", idx({1, 1, 1}, {0, 0, 0, 0}, 0x0D));
  EXPECT_EQ(fault(), "read_mnist: " + base_ +
                         "train-images-idx3-ubyte does not hold images; shape is (1, 1, 1); "
                         "expected bytes of rank 3");
}

TEST_F(MnistFolder, RefusesLabelsThatDoNotFit) {
  write("train-labels-idx1-ubyte", idx({3}, {1, 2, 3}));
  EXPECT_EQ(fault(), "read_mnist: " + base_ +
                         "train-labels-idx1-ubyte does not fit the images; images are "
                         "(2, 1, 3), labels are (3); expected one byte an image");
  write("train-labels-idx1-ubyte", idx({2}, {1, 10}));
  EXPECT_EQ(fault(), "read_mnist: label 10 at position 1 of " + base_ +
                         "train-labels-idx1-ubyte is out of range; expected 0..9");
  EXPECT_EQ(read_mnist<float>(folder_, 11).train.y().at(1), 10);
}

}  // namespace

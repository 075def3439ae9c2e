// read_cifar10 on folders made by hand: values, order of bytes, and each fault by its message.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <wengert/data/cifar.hpp>

#include "support/errors.hpp"
#include "support/temp_dir.hpp"

namespace {

using wengert::IoError;
using wengert::data::read_cifar10;
using Bytes = std::vector<unsigned char>;

/// A label and three planes, of which pixel p of channel c is value(p, c).
template <class F>
Bytes record(unsigned char label, F value) {
  Bytes b{label};
  for (int c = 0; c < 3; ++c)
    for (int p = 0; p < 1024; ++p) b.push_back(static_cast<unsigned char>(value(p, c)));
  return b;
}
Bytes plain(unsigned char label, int red, int green, int blue) {
  const int value[] = {red, green, blue};
  return record(label, [&](int, int c) { return value[c]; });
}
Bytes operator+(Bytes a, const Bytes& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

class CifarFolder : public testing::Test {
 protected:
  CifarFolder() {
    write("data_batch_1.bin",
          record(3, [](int p, int c) { return p / 32 * 4 + p % 32 + c; }) + plain(9, 1, 2, 3));
    for (int i = 2; i <= 5; ++i)
      write("data_batch_" + std::to_string(i) + ".bin",
            plain(static_cast<unsigned char>(i), i, 0, 255) + plain(0, 10 * i, 0, 0));
    write("test_batch.bin", plain(1, 7, 8, 9) + plain(8, 200, 100, 50));
  }
  void write(const std::string& name, const Bytes& bytes) const {
    std::ofstream(dir_ / name, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  }
  std::string fault() const {
    return message_of<IoError>([this] { read_cifar10(dir_ / "", 2); });
  }

  TempDir dir_;
  const std::string base_ = (dir_ / "") + "/";
};

TEST_F(CifarFolder, PutsTheColoursOfAPixelTogether) {
  const auto data = read_cifar10(dir_ / "", 2);
  ASSERT_EQ(data.train.x().shape(), (wengert::Shape{10, 32, 32, 3}));
  ASSERT_EQ(data.test.x().shape(), (wengert::Shape{2, 32, 32, 3}));
  EXPECT_EQ(data.train.y().to_vector(), (std::vector<std::int64_t>{3, 9, 2, 0, 3, 0, 4, 0, 5, 0}));
  EXPECT_EQ(data.test.y().to_vector(), (std::vector<std::int64_t>{1, 8}));
  for (int h = 0; h < 32; ++h)
    for (int w = 0; w < 32; ++w)
      for (int c = 0; c < 3; ++c) ASSERT_EQ(data.train.x().at(0, h, w, c), 4 * h + w + c);
  EXPECT_EQ(data.train.x().at(1, 31, 31, 2), 3);
  EXPECT_EQ(data.train.x().at(8, 5, 6, 0), 5);
  EXPECT_EQ(data.train.x().at(9, 5, 6, 0), 50);
  EXPECT_EQ(data.test.x().at(1, 0, 31, 1), 100);
  EXPECT_EQ(wengert::data::cifar10_names[8], "ship");
}

TEST_F(CifarFolder, NamesTheFileThatIsMissing) {
  std::remove((dir_ / "data_batch_4.bin").c_str());
  EXPECT_EQ(fault(), "read_cifar10: cannot open the file (No such file or directory); path is " + base_ +
                         "data_batch_4.bin; expected a readable CIFAR-10 file");
  std::filesystem::create_directory(dir_ / "data_batch_4.bin");
  EXPECT_EQ(fault(), "read_cifar10: not a regular file; path is " + base_ +
                         "data_batch_4.bin; expected a readable CIFAR-10 file");
}

TEST_F(CifarFolder, RefusesFilesOfAnotherSize) {
  Bytes whole = plain(1, 7, 8, 9) + plain(8, 200, 100, 50);
  whole.pop_back();
  write("test_batch.bin", whole);
  EXPECT_EQ(fault(), "read_cifar10: the file holds 6145 bytes; path is " + base_ +
                         "test_batch.bin; expected 6146, which are 2 records of 3073");
  write("test_batch.bin", {});
  EXPECT_EQ(fault(), "read_cifar10: the file holds 0 bytes; path is " + base_ +
                         "test_batch.bin; expected 6146, which are 2 records of 3073");
  EXPECT_EQ(message_of<IoError>([this] { read_cifar10(dir_ / ""); }),
            "read_cifar10: the file holds 6146 bytes; path is " + base_ +
                "data_batch_1.bin; expected 30730000, which are 10000 records of 3073");
}

TEST_F(CifarFolder, RefusesLabelsThatAreNone) {
  write("data_batch_2.bin", plain(9, 0, 0, 0) + plain(10, 0, 0, 0));
  EXPECT_EQ(fault(), "read_cifar10: label 10 of record 1 is out of range; path is " + base_ +
                         "data_batch_2.bin; expected 0..9");
}

TEST(Cifar, NeedsARecord) {
  EXPECT_ERROR(read_cifar10("/nowhere", 0), wengert::ValueError,
               "read_cifar10: records is 0; expected 1..16777216");
}

}  // namespace

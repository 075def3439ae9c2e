// read_idx against files written byte by byte: every element type, both containers, and hostile input.
#include <cstdint>
#include <fstream>
#include <string>
#include <vector>
#include <zlib.h>

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <wengert/data/idx.hpp>

#include "support/temp_dir.hpp"

namespace wg = wengert;
using wg::data::IdxArray;
using wg::data::IdxType;
using wg::data::read_idx;

namespace {

using Bytes = std::vector<unsigned char>;

Bytes operator+(Bytes a, const Bytes& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

/// The header of an array with these dimensions.
Bytes header(int type, const std::vector<std::uint32_t>& dims) {
  Bytes b{0, 0, static_cast<unsigned char>(type), static_cast<unsigned char>(dims.size())};
  for (std::uint32_t d : dims)
    for (int shift = 24; shift >= 0; shift -= 8) b.push_back(static_cast<unsigned char>(d >> shift));
  return b;
}

Bytes gzip(const Bytes& raw) {
  Bytes out(raw.size() + raw.size() / 100 + 256);
  z_stream z{};
  EXPECT_EQ(deflateInit2(&z, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  z.next_in = const_cast<unsigned char*>(raw.data());
  z.avail_in = static_cast<unsigned>(raw.size());
  z.next_out = out.data();
  z.avail_out = static_cast<unsigned>(out.size());
  EXPECT_EQ(deflate(&z, Z_FINISH), Z_STREAM_END);
  out.resize(z.total_out);
  deflateEnd(&z);
  return out;
}

class Idx : public testing::Test {
 protected:
  std::string write(const Bytes& bytes, const std::string& name = "a.idx") const {
    const std::string path = dir_ / name;
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    return path;
  }

  /// The file must be refused with this fault and this expectation, and its path named between them.
  void refuses(const std::string& path, const std::string& fault, const std::string& expectation) const {
    try {
      read_idx(path);
      FAIL() << "accepted " << path;
    } catch (const wg::IoError& e) {
      EXPECT_EQ(e.what(), "read_idx: " + fault + "; path is " + path + "; expected " + expectation);
    }
  }

  TempDir dir_;
};

const Bytes six_u8 = header(8, {2, 3}) + Bytes{0, 1, 127, 128, 254, 255};

template <class T>
void expect_values(const IdxArray& a, std::vector<T> want) {
  const auto got = a.values<T>();
  EXPECT_EQ(std::vector<T>(got.begin(), got.end()), want);
}

TEST_F(Idx, ReadsUnsignedBytes) {
  const IdxArray a = read_idx(write(six_u8));
  EXPECT_EQ(a.type, IdxType::u8);
  EXPECT_EQ(a.shape, (wg::Shape{2, 3}));
  expect_values<std::uint8_t>(a, {0, 1, 127, 128, 254, 255});
}

TEST_F(Idx, ReadsSignedBytes) {
  expect_values<std::int8_t>(read_idx(write(header(9, {3}) + Bytes{0x7f, 0x80, 0xff})), {127, -128, -1});
}

TEST_F(Idx, ReadsShorts) {
  expect_values<std::int16_t>(read_idx(write(header(11, {3}) + Bytes{0x01, 0x02, 0xff, 0xfe, 0x80, 0x00})),
                              {258, -2, -32768});
}

TEST_F(Idx, ReadsInts) {
  expect_values<std::int32_t>(
      read_idx(write(header(12, {2, 1}) + Bytes{0x01, 0x02, 0x03, 0x04, 0xff, 0xff, 0xff, 0xff})),
      {16909060, -1});
}

TEST_F(Idx, ReadsFloats) {  // 0x3fc00000 is 1.5, 0xc0490fdb is -pi
  expect_values<float>(read_idx(write(header(13, {2}) + Bytes{0x3f, 0xc0, 0, 0, 0xc0, 0x49, 0x0f, 0xdb})),
                       {1.5f, -3.14159274f});
}

TEST_F(Idx, ReadsDoubles) {  // 0xc004000000000000 is -2.5
  expect_values<double>(read_idx(write(header(14, {1}) + Bytes{0xc0, 0x04, 0, 0, 0, 0, 0, 0})), {-2.5});
}

TEST_F(Idx, ReadsGzipWhateverItsName) {
  expect_values<std::uint8_t>(read_idx(write(gzip(six_u8), "plain-name.idx")), {0, 1, 127, 128, 254, 255});
  expect_values<std::uint8_t>(read_idx(write(six_u8, "not-compressed.gz")), {0, 1, 127, 128, 254, 255});
}

TEST_F(Idx, ReadsGzipOfSeveralSteps) {
  const std::uint32_t n = 5'000'003;  // more than two steps of growth
  Bytes raw = header(8, {n});
  std::vector<std::uint8_t> want;
  for (std::uint32_t i = 0; i < n; ++i) want.push_back(static_cast<std::uint8_t>(i * 2654435761u >> 24));
  raw.insert(raw.end(), want.begin(), want.end());
  expect_values(read_idx(write(gzip(raw))), want);
}

TEST_F(Idx, ReadsPipes) {
  const std::string path = dir_ / "pipe";
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  const std::string command = "cat " + write(six_u8) + " > " + path + " &";
  ASSERT_EQ(std::system(command.c_str()), 0);
  expect_values<std::uint8_t>(read_idx(path), {0, 1, 127, 128, 254, 255});
}

TEST_F(Idx, ReadsHighestRank) {
  const IdxArray a = read_idx(write(header(8, {1, 1, 1, 1, 1, 1, 1, 2}) + Bytes{7, 8}));
  EXPECT_EQ(a.shape, (wg::Shape{1, 1, 1, 1, 1, 1, 1, 2}));
}

TEST_F(Idx, ReadsZeroSizedArrays) {
  const IdxArray a = read_idx(write(header(12, {4294967295u, 4294967295u, 0, 4294967295u})));
  EXPECT_EQ(a.shape, (wg::Shape{4294967295, 4294967295, 0, 4294967295}));
  EXPECT_TRUE(a.bytes.empty());
}

TEST_F(Idx, ValuesOfAnotherTypeThrow) {
  const IdxArray a = read_idx(write(six_u8));
  try {
    a.values<float>();
    FAIL() << "accepted";
  } catch (const wg::ValueError& e) {
    EXPECT_STREQ(e.what(),
                 "IdxArray::values: element types differ; the file holds uint8, asked for float32; "
                 "expected the type of the file");
  }
}

TEST_F(Idx, RefusesWhatCannotBeOpened) {
  refuses(dir_ / "missing", "cannot open the file (No such file or directory)", "a readable IDX file");
  refuses(write(six_u8) + "/below", "cannot open the file (Not a directory)", "a readable IDX file");
  refuses("", "cannot open the file (No such file or directory)", "a readable IDX file");
  refuses(dir_ / ".", "path is a directory", "an IDX file, plain or gzip");
  refuses(write({}), "file is empty", "an IDX file, plain or gzip");
}

TEST_F(Idx, RefusesTruncatedHeaders) {
  refuses(write({0, 0, 8}), "header is truncated; the file holds 3 bytes", "at least 4");
  refuses(write(gzip({})), "header is truncated; the file holds 0 bytes", "at least 4");
  refuses(write({0, 0, 8, 2, 0, 0, 0, 2, 0}), "header is truncated; rank is 2, the file holds 9 bytes",
          "at least 12");
}

TEST_F(Idx, RefusesForeignFiles) {
  refuses(write({'P', 'K', 3, 4, 5, 6}), "not an IDX file; its first two bytes are not zero",
          "0 0, a type code and a rank");
  refuses(write({0, 1, 8, 1, 0, 0, 0, 0}), "not an IDX file; its first two bytes are not zero",
          "0 0, a type code and a rank");
  refuses(write({0, 0, 10, 1, 0, 0, 0, 0}), "unknown element type; code is 10",
          "8 (uint8), 9 (int8), 11 (int16), 12 (int32), 13 (float32) or 14 (float64)");
  refuses(write({0, 0, 8, 0, 1}), "rank 0 is out of range", "1..8");
  refuses(write({0, 0, 8, 9, 1}), "rank 9 is out of range", "1..8");
}

TEST_F(Idx, RefusesTruncatedData) {
  const Bytes cut = header(8, {2, 3}) + Bytes{0, 1, 127, 128, 254};
  const std::string fault =
      "data is truncated; shape is (2, 3), type is uint8, the file holds 5 bytes of data";
  refuses(write(cut), fault, "6");
  refuses(write(gzip(cut)), fault, "6");
}

TEST_F(Idx, RefusesBytesLeftOver) {
  const std::string fault = "bytes are left over; shape is (2, 3), type is uint8";
  refuses(write(six_u8 + Bytes{0}), fault, "6 bytes of data");
  refuses(write(gzip(six_u8 + Bytes{0})), fault, "6 bytes of data");
}

TEST_F(Idx, RefusesSizesThatOverflow) {
  const Bytes b = header(14, {4294967295u, 4294967295u, 4294967295u}) + Bytes{1};
  const std::string fault = "size overflows; shape is (4294967295, 4294967295, 4294967295)";
  refuses(write(b), fault, "an array that fits memory");
  refuses(write(gzip(b)), fault, "an array that fits memory");
}

TEST_F(Idx, RefusesClaimsWithoutAllocatingThem) {
  const Bytes b = header(8, {2147483647, 1048576}) + Bytes{1, 2};  // claims 2 PiB
  const std::string fault =
      "data is truncated; shape is (2147483647, 1048576), type is uint8, the file holds 2 bytes of data";
  refuses(write(b), fault, "2251799812636672");
  refuses(write(gzip(b)), fault, "2251799812636672");
}

TEST_F(Idx, RefusesDamagedGzip) {
  const Bytes good = gzip(six_u8);
  Bytes checksum = good, length = good, body = good;
  checksum[good.size() - 8] ^= 1;
  length[good.size() - 1] ^= 1;
  body[10] = 0x07;  // a block type that does not exist
  auto damaged = [](const std::string& what) { return "compressed data is damaged (" + what + ")"; };
  refuses(write(checksum), damaged("incorrect data check"), "an intact gzip file");
  refuses(write(length), damaged("incorrect length check"), "an intact gzip file");
  refuses(write(body), damaged("invalid block type"), "an intact gzip file");
}

TEST_F(Idx, RefusesGzipCutAnywhere) {
  const Bytes good = gzip(six_u8);
  for (std::size_t n = 1; n < good.size(); ++n)
    EXPECT_THROW(read_idx(write(Bytes(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(n)))),
                 wg::IoError)
        << n << " of " << good.size() << " bytes";
  refuses(write(Bytes(good.begin(), good.end() - 4)), "compressed data ends early", "a complete gzip file");
}

}  // namespace

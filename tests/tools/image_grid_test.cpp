// The script of a grid of images that gnuplot is given, and faults. A stand-in for gnuplot on PATH keeps it.
#include <array>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>
#include <stdlib.h>
#include <string>

#include <gtest/gtest.h>

#include <wengert/tools/image_grid.hpp>

#include "support/errors.hpp"
#include "support/temp_dir.hpp"

namespace {

using namespace wengert;
using tools::image_grid_png;
using Classes = Tensor<std::int64_t>;

constexpr std::array<std::string_view, 3> names{"cat", "dog", "it's"};

std::string content(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

class ImageGrid : public testing::Test {
 protected:
  ImageGrid() {
    ::setenv("PATH", (dir_ / "bin").c_str(), 1);
    std::filesystem::create_directory(dir_ / "bin");
  }
  ~ImageGrid() override { ::setenv("PATH", path_.c_str(), 1); }

  void stand_in() const {
    const std::string program = dir_ / "bin/gnuplot";
    std::ofstream(program) << "#!/bin/sh\nPATH=/usr/bin:/bin\n[ \"$1\" = --version ] || { cat > "
                           << (dir_ / "script") << "; echo png > '" << picture_ << ".part'; }\n";
    std::filesystem::permissions(program, std::filesystem::perms::owner_all);
  }
  std::string script() const { return content(dir_ / "script"); }

  TempDir dir_;
  std::string path_ = ::getenv("PATH");
  const std::string picture_ = dir_ / "a.png";
};

TEST_F(ImageGrid, MarksWhatWasTakenForSomethingElse) {
  stand_in();
  // Three images of one row and two pixels; two columns, 20 pixels of the picture to an image's width.
  const Tensor<Byte> x({3, 1, 2, 3}, {255, 0, 1, 2, 3, 4, 10, 11, 12, 13, 14, 15, 20, 21, 22, 23, 24, 25});
  ASSERT_EQ(image_grid_png(picture_, x, Classes({3}, {0, 1, 2}), Classes({3}, {0, 2, 2}), names,
                           {.columns = 2, .side = 20}),
            "");
  EXPECT_EQ(content(picture_), "png\n");
  EXPECT_EQ(
      script(),
      "set terminal pngcairo noenhanced font 'Sans,10' size 96,144\nset output '" + picture_ +
          ".part'\nunset border\nunset tics\nunset key\n"
          "set lmargin 0\nset rmargin 0\nset tmargin 0\nset bmargin 0\nset xrange [0:96.00]\n"
          "set yrange [144.00:0]\n"
          "set object rectangle from 19.50,19.50 to 42.50,32.50 front fs empty border lc rgb '#2e7d32' lw 1\n"
          "set label 'cat' at 31.00,42.00 center textcolor rgb '#2e7d32'\n"
          "set object rectangle from 53.50,19.50 to 76.50,32.50 front fs empty border lc rgb '#c62828' lw 3\n"
          "set label 'dog' at 65.00,42.00 center textcolor rgb '#c62828'\n"
          "set label 'is it''s' at 65.00,56.00 center textcolor rgb '#555555' font 'Sans,9'\n"
          "set object rectangle from 19.50,77.50 to 42.50,90.50 front fs empty border lc rgb '#2e7d32' lw 1\n"
          "set label 'it''s' at 31.00,100.00 center textcolor rgb '#2e7d32'\n"
          "plot '-' using 1:2:3:4:5 with rgbimage, '-' using 1:2:3:4:5 with rgbimage, "
          "'-' using 1:2:3:4:5 with rgbimage\n"
          "26.00 26.00 255 0 1\n36.00 26.00 2 3 4\ne\n"
          "60.00 26.00 10 11 12\n70.00 26.00 13 14 15\ne\n"
          "26.00 84.00 20 21 22\n36.00 84.00 23 24 25\ne\n");
}

TEST_F(ImageGrid, TakesNumbersAndOneChannelInAnyLayout) {
  stand_in();
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  // The columns of one 2 x 3 image, seen as its rows.
  const Tensor<float> memory({3, 2}, {0, 1, 0.5f, -3, nan, 7});
  const Tensor<float> x(memory.buffer(), {1, 2, 3, 1}, {6, 1, 2, 1}, 0);
  ASSERT_EQ(image_grid_png(picture_, x, Classes({1}, {0}), Classes({1}, {0}), names,
                           {.title = "A title", .side = 30}),
            "");
  const std::string s = script();
  EXPECT_NE(s.find("size 72,136\n"), std::string::npos) << s;
  EXPECT_NE(s.find("set label 'A title' at 36.00,34.00 center font 'Sans,14'\n"), std::string::npos) << s;
  EXPECT_NE(s.find("plot '-' using 1:2:3:4:5 with rgbimage\n"
                   "26.00 66.00 0 0 0\n36.00 66.00 128 128 128\n46.00 66.00 0 0 0\n"
                   "26.00 76.00 255 255 255\n36.00 76.00 0 0 0\n46.00 76.00 255 255 255\ne\n"),
            std::string::npos)
      << s;
}

TEST_F(ImageGrid, SaysThatGnuplotIsMissing) {
  EXPECT_EQ(
      image_grid_png(picture_, Tensor<Byte>({1, 1, 1, 1}, {1}), Classes({1}, {0}), Classes({1}, {0}), names),
      "gnuplot is not installed (Debian and Ubuntu: gnuplot-nox)");
}

TEST_F(ImageGrid, RefusesWhatIsNoGrid) {
  const Tensor<Byte> x({2, 1, 1, 1}, {1, 2});
  const Classes two({2}, {0, 1}), one({1}, {0});
  EXPECT_ERROR(image_grid_png(picture_, Tensor<Byte>({2, 4, 4, 2}), two, two, names), ShapeError,
               "image_grid_png: these are no images; images are (2, 4, 4, 2); expected (N, H, W, 3) or "
               "(N, H, W, 1), not empty");
  EXPECT_ERROR(image_grid_png(picture_, Tensor<Byte>({0, 4, 4, 3}), two, two, names), ShapeError,
               "image_grid_png: these are no images; images are (0, 4, 4, 3); expected (N, H, W, 3) or "
               "(N, H, W, 1), not empty");
  EXPECT_ERROR(image_grid_png(picture_, x, two, one, names), ShapeError,
               "image_grid_png: numbers of images and classes differ; images are (2, 1, 1, 1), predicted is "
               "(2), labels are (1); expected one class an image");
  EXPECT_ERROR(image_grid_png(picture_, x, Classes({2}, {0, 3}), two, names), IndexError,
               "image_grid_png: class 3 has no name; there are 3 names; expected 0..2");
  EXPECT_ERROR(image_grid_png(picture_, x, two, two, names, {.columns = 0}), ValueError,
               "image_grid_png: columns are 0, side is 96; expected at least 1 of both");
}

TEST(ImageGridWithGnuplot, DrawsAPng) {
  if (!tools::have_gnuplot()) return;  // an optional program; the other tests need none
  const TempDir dir;
  const std::string path = dir / "it's here.png";
  const Tensor<Byte> x({2, 2, 2, 1}, {0, 100, 200, 255, 1, 2, 3, 4});
  ASSERT_EQ(image_grid_png(path, x, Classes({2}, {0, 1}), Classes({2}, {1, 1}), names, {.title = "it's"}),
            "");
  EXPECT_EQ(content(path).substr(0, 8), "\x89PNG\r\n\x1a\n");
}

}  // namespace

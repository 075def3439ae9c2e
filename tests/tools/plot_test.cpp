// Pictures by gnuplot: the script it is given, and every reason for there being no picture. A stand-in for
// gnuplot on PATH shows what happens without one, and when it fails.
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>
#include <stdlib.h>
#include <string>

#include <gtest/gtest.h>

#include <wengert/tools/plot.hpp>

#include "support/temp_dir.hpp"

namespace {

using wengert::tools::have_gnuplot;
using wengert::tools::Panel;
using wengert::tools::plot_png;

const std::vector<Panel> one_panel{{"loss", "step", "loss", {{"training", {0, 1, 2}, {3, 2, 1.5}}}}};

std::string content(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

/// A folder that is all of PATH, with a `gnuplot` in it that runs `body` as a shell script.
class Plot : public testing::Test {
 protected:
  Plot() {
    ::setenv("PATH", (dir_ / "bin").c_str(), 1);
    std::filesystem::create_directory(dir_ / "bin");
  }
  ~Plot() override { ::setenv("PATH", path_.c_str(), 1); }

  void stand_in(const std::string& body) const {
    const std::string program = dir_ / "bin/gnuplot";
    std::ofstream(program) << "#!/bin/sh\nPATH=/usr/bin:/bin\n" << body << '\n';
    std::filesystem::permissions(program, std::filesystem::perms::owner_all);
  }

  TempDir dir_;
  std::string path_ = ::getenv("PATH");
  const std::string picture_ = dir_ / "a.png";
};

TEST_F(Plot, SaysThatGnuplotIsMissing) {
  EXPECT_FALSE(have_gnuplot());
  EXPECT_EQ(plot_png(picture_, one_panel), "gnuplot is not installed (Debian and Ubuntu: gnuplot-nox)");
  EXPECT_FALSE(std::filesystem::exists(picture_));
}

TEST_F(Plot, GivesGnuplotAScriptAndReplacesThePictureWhenItIsDone) {
  stand_in("[ \"$1\" = --version ] || { cat > " + (dir_ / "script") + "; echo png > '" + picture_ +
           ".part'; }");
  EXPECT_TRUE(have_gnuplot());
  std::vector<Panel> panels = one_panel;
  constexpr double inf = std::numeric_limits<double>::infinity();
  panels.push_back({"it's\nacc", "x", "y", {{"none", {}, {}}, {"some", {1, 2, 3}, {0.5, inf, 0.25}}}});
  EXPECT_EQ(plot_png(picture_, panels), "");
  EXPECT_EQ(content(picture_), "png\n");
  EXPECT_FALSE(std::filesystem::exists(picture_ + ".part"));
  EXPECT_EQ(content(dir_ / "script"),
            "set terminal pngcairo noenhanced size 1280,480\nset output '" + picture_ +
                ".part'\nset multiplot layout 1,2\nset grid\nset key below\n"
                "set title 'loss'\nset xlabel 'step'\nset ylabel 'loss'\n"
                "plot '-' with linespoints pointtype 7 linewidth 2 title 'training'\n0 3\n1 2\n2 1.5\ne\n"
                "set title 'it''s acc'\nset xlabel 'x'\nset ylabel 'y'\n"
                "plot '-' with linespoints pointtype 7 linewidth 2 title 'some'\n1 0.5\n3 0.25\ne\n"
                "unset multiplot\n");
}

TEST_F(Plot, TellsWhatGnuplotSaidAndKeepsThePictureOfBefore) {
  std::ofstream(picture_) << "before";
  stand_in(
      "[ \"$1\" = --version ] || { echo 'plot nonsense'; echo '     ^' >&2; echo '  line 3: no such "
      "terminal' >&2; exit 1; }");
  EXPECT_EQ(plot_png(picture_, one_panel), "gnuplot failed: line 3: no such terminal");
  EXPECT_EQ(content(picture_), "before");
  EXPECT_FALSE(std::filesystem::exists(picture_ + ".part"));

  stand_in("[ \"$1\" = --version ] || exit 3");
  EXPECT_EQ(plot_png(picture_, one_panel), "gnuplot failed with status 3");
  stand_in("exit 0");
  EXPECT_EQ(plot_png(picture_, one_panel), "gnuplot wrote nothing to " + picture_ + ".part");
  EXPECT_EQ(content(picture_), "before");
}

TEST_F(Plot, SurvivesAGnuplotThatReadsNothing) {
  stand_in("[ \"$1\" = --version ] || exit 1");
  std::vector<Panel> large = one_panel;
  for (int i = 0; i < 100'000; ++i) {  // more than a pipe holds
    large[0].curves[0].x.push_back(i);
    large[0].curves[0].y.push_back(i);
  }
  EXPECT_EQ(plot_png(picture_, large), "gnuplot failed with status 1");
}

TEST_F(Plot, NamesAFileThatCannotBeWritten) {
  stand_in("exit 0");
  const std::string nowhere = dir_ / "no/a.png";
  EXPECT_EQ(plot_png(nowhere, one_panel), "cannot write " + nowhere + ".part (No such file or directory)");
  std::filesystem::create_directory(picture_);
  stand_in("[ \"$1\" = --version ] || echo png > '" + picture_ + ".part'");
  EXPECT_EQ(plot_png(picture_, one_panel), "cannot replace " + picture_ + " (Is a directory)");
}

TEST_F(Plot, LeavesWhatIsNoRegularFileAlone) {
  stand_in("[ \"$1\" = --version ] || echo png > '" + picture_ + ".part'");
  ASSERT_EQ(::mkfifo(picture_.c_str(), 0600), 0);
  EXPECT_EQ(plot_png(picture_, one_panel), "cannot replace " + picture_ + " (not a regular file)");
  EXPECT_TRUE(std::filesystem::is_fifo(picture_));
  EXPECT_FALSE(std::filesystem::exists(picture_ + ".part"));
}

TEST_F(Plot, RefusesPanelsWithoutPoints) {
  EXPECT_EQ(plot_png(picture_, {}), "there is nothing to draw");
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(
      plot_png(picture_, {one_panel[0], {"accuracy", "x", "y", {{"a", {1, 2}, {nan, nan}}, {"b", {1}, {}}}}}),
      "the panel 'accuracy' has no finite points");
}

TEST(PlotWithGnuplot, DrawsAPng) {
  if (!have_gnuplot()) return;  // an optional program; the other tests need none
  const TempDir dir;
  const std::string path = dir / "it's here.png";
  ASSERT_EQ(plot_png(path, one_panel), "");
  EXPECT_EQ(content(path).substr(0, 8), "\x89PNG\r\n\x1a\n");
}

}  // namespace

// The progress line: its text, what reaches a file, and what reaches a terminal.
#include <algorithm>
#include <fcntl.h>
#include <limits>
#include <stdlib.h>
#include <string>
#include <unistd.h>

#include <gtest/gtest.h>
#include <sys/ioctl.h>

#include <wengert/tools/progress.hpp>

namespace {

using wengert::Index;
using wengert::tools::duration_text;
using wengert::tools::Progress;
using wengert::tools::progress_text;

TEST(Duration, ChangesUnitsWhereOneRunsOut) {
  EXPECT_EQ(duration_text(0), "0.0 s");
  EXPECT_EQ(duration_text(12.34), "12.3 s");
  EXPECT_EQ(duration_text(59.9), "59.9 s");
  EXPECT_EQ(duration_text(60), "1 min 00 s");
  EXPECT_EQ(duration_text(245), "4 min 05 s");
  EXPECT_EQ(duration_text(3599.9), "59 min 59 s");
  EXPECT_EQ(duration_text(3600), "1 h 00 min");
  EXPECT_EQ(duration_text(7620), "2 h 07 min");
  EXPECT_EQ(duration_text(1e6), "277 h 46 min");
}

TEST(ProgressText, ShowsBarShareRateAndTimeLeft) {
  EXPECT_EQ(progress_text("epoch 1/3", "images", 15000, 60000, 12.5, "loss 0.412"),
            "epoch 1/3 [######..................]  25 %  1200 images/s  ETA 37.5 s  loss 0.412");
  EXPECT_EQ(progress_text("read", "files", 3, 3, 2),
            "read [########################] 100 %  1.5 files/s  in 2.0 s");
}

TEST(ProgressText, BearsTheBeginningAndOddTotals) {
  EXPECT_EQ(progress_text("a", "b", 0, 10, 0), "a [........................]   0 %  0.0 b/s");
  EXPECT_EQ(progress_text("a", "b", 0, 0, 0), "a [........................]   0 %  0.0 b/s");
  EXPECT_EQ(progress_text("a", "b", 30, 10, 1), "a [########################] 100 %  30 b/s  in 1.0 s");
  constexpr Index many = std::numeric_limits<Index>::max();
  EXPECT_EQ(progress_text("a", "b", many / 2, many, 0), "a [############............]  50 %  0.0 b/s");
}

/// Lines in a text that ends in one.
std::size_t lines(const std::string& text) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

TEST(Progress, IsALineATenthWhereThereIsNoTerminal) {
  testing::internal::CaptureStderr();
  {
    Progress progress("epoch", 1000, "steps");
    for (Index done = 1; done <= 1000; ++done) progress.update(done, "loss 1");
  }
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_EQ(lines(text), 11u) << text;  // 0 % to 100 %
  EXPECT_EQ(text.find_first_of("\r\x1b"), std::string::npos) << text;
  EXPECT_TRUE(text.starts_with("epoch [........................]   0 %  ")) << text;
  EXPECT_TRUE(text.ends_with("  loss 1\n")) << text;
  EXPECT_NE(text.find("\nepoch [########################] 100 %  "), std::string::npos) << text;
}

TEST(Progress, SaysNothingBeforeTheFirstUpdate) {
  testing::internal::CaptureStderr();
  { Progress progress("epoch", 10, "steps"); }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

/// A terminal of its own in place of stderr.
class Terminal {
 public:
  explicit Terminal(unsigned short columns) : leader_(::posix_openpt(O_RDWR | O_NOCTTY)), before_(::dup(2)) {
    EXPECT_EQ(::grantpt(leader_), 0);
    EXPECT_EQ(::unlockpt(leader_), 0);
    const int follower = ::open(::ptsname(leader_), O_RDWR | O_NOCTTY);
    struct winsize size {};
    size.ws_col = columns;
    EXPECT_EQ(::ioctl(follower, TIOCSWINSZ, &size), 0);
    EXPECT_EQ(::dup2(follower, 2), 2);
    ::close(follower);
  }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;
  ~Terminal() {
    ::close(leader_);
    ::close(before_);
  }

  /// Ends it, and returns what was written.
  std::string close() {
    std::string text;
    char part[4096];
    EXPECT_EQ(::fcntl(leader_, F_SETFL, O_NONBLOCK), 0);
    for (ssize_t n; (n = ::read(leader_, part, sizeof part)) > 0;)
      text.append(part, static_cast<std::size_t>(n));
    EXPECT_EQ(::dup2(before_, 2), 2);
    return text;
  }

 private:
  int leader_, before_;
};

TEST(Progress, RedrawsOneLineOnATerminalAndKeepsItWithinItsWidth) {
  Terminal terminal(40);
  {
    Progress progress("epoch", 1000, "steps");
    for (Index done = 1; done <= 1000; ++done) progress.update(done, "a note far too long for that terminal");
  }
  const std::string text = terminal.close();
  EXPECT_EQ(lines(text), 1u) << text;
  const std::string last = text.substr(text.find_last_of('\r', text.size() - 3));
  EXPECT_EQ(last, "\repoch [########################] 100 % \x1b[K\r\n");
  EXPECT_TRUE(text.ends_with("\x1b[K\r\n")) << text;
  EXPECT_LE(std::count(text.begin(), text.end(), '\r'), 12) << "ten times a second at most";
}

}  // namespace

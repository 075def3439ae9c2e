// Line plots as PNG, drawn by gnuplot when it is installed. Floor: tools.
#pragma once

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include <sys/stat.h>
#include <sys/wait.h>

#include <wengert/base/config.hpp>

namespace wengert::inline WENGERT_ISA::tools {

/// One curve of a panel.
struct Curve {
  std::string name;
  std::vector<double> x, y;
};

/// One set of axes.
struct Panel {
  std::string title, x_label, y_label;
  std::vector<Curve> curves;
};

namespace detail {

/// A string that gnuplot reads as it stands.
inline std::string gnuplot_quoted(std::string_view s) {
  std::string out = "'";
  for (const char c : s)
    if (c == '\'')
      out += "''";
    else if (c == '\n')
      out += ' ';
    else
      out += c;
  return out + "'";
}

inline std::string gnuplot_script(const std::string& path, const std::vector<Panel>& panels) {
  const std::string count = std::to_string(panels.size());
  std::string s = "set terminal pngcairo noenhanced size " + std::to_string(640 * panels.size()) +
                  ",480\nset output " + gnuplot_quoted(path) + "\nset multiplot layout 1," + count +
                  "\nset grid\nset key below\n";
  for (const Panel& p : panels) {
    s += "set title " + gnuplot_quoted(p.title) + "\nset xlabel " + gnuplot_quoted(p.x_label) +
         "\nset ylabel " + gnuplot_quoted(p.y_label) + "\nplot ";
    bool first = true;
    for (const Curve& c : p.curves) {
      s += std::string(first ? "" : ", ") + "'-' with " +
           (c.x.size() < 40 ? "linespoints pointtype 7" : "lines") + " linewidth 2 title " +
           gnuplot_quoted(c.name);
      first = false;
    }
    s += "\n";
    char point[64];
    for (const Curve& c : p.curves) {
      for (std::size_t i = 0; i < c.x.size() && i < c.y.size(); ++i) {
        if (!std::isfinite(c.x[i]) || !std::isfinite(c.y[i])) continue;
        std::snprintf(point, sizeof point, "%.9g %.9g\n", c.x[i], c.y[i]);
        s += point;
      }
      s += "e\n";
    }
  }
  return s + "unset multiplot\n";
}

}  // namespace detail

/// Draws panels side by side into the PNG file `path`. Returns an empty string, or why there is no picture:
/// gnuplot is not installed, a panel has no points, or the file cannot be written. A training run goes on
/// either way.
inline std::string plot_png(const std::string& path, const std::vector<Panel>& panels) {
  if (panels.empty()) return "nothing to draw";
  for (const Panel& p : panels) {
    bool points = false;
    for (const Curve& c : p.curves)
      for (std::size_t i = 0; i < c.x.size() && i < c.y.size(); ++i)
        points = points || (std::isfinite(c.x[i]) && std::isfinite(c.y[i]));
    if (!points) return "the panel '" + p.title + "' has no finite points";
  }
  if (std::system("command -v gnuplot >/dev/null 2>&1") != 0)
    return "gnuplot is not installed (Debian and Ubuntu: gnuplot-nox)";
  std::FILE* const probe = std::fopen(path.c_str(), "wb");
  if (probe == nullptr) return "cannot write " + path;
  std::fclose(probe);
  std::FILE* const pipe = ::popen("gnuplot >/dev/null 2>&1", "w");
  if (pipe == nullptr) return "gnuplot could not be started";
  const std::string script = detail::gnuplot_script(path, panels);
  const bool written = std::fwrite(script.data(), 1, script.size(), pipe) == script.size();
  const int status = ::pclose(pipe);
  struct stat info {};
  if (!written || status != 0 || ::stat(path.c_str(), &info) != 0 || info.st_size == 0)
    return "gnuplot failed on " + path;
  return {};
}

}  // namespace wengert::inline WENGERT_ISA::tools

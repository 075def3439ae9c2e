// Line plots as PNG, drawn by gnuplot when it is installed. Floor: tools.
#pragma once

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <spawn.h>
#include <string>
#include <string_view>
#include <unistd.h>
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

inline bool has_points(const Curve& c) {
  for (std::size_t i = 0; i < c.x.size() && i < c.y.size(); ++i)
    if (std::isfinite(c.x[i]) && std::isfinite(c.y[i])) return true;
  return false;
}
inline bool has_points(const Panel& p) {
  return std::any_of(p.curves.begin(), p.curves.end(), [](const Curve& c) { return has_points(c); });
}

/// Curves without a finite point are left out: gnuplot would stop at them.
inline std::string gnuplot_script(const std::string& path, const std::vector<Panel>& panels) {
  const std::string count = std::to_string(panels.size());
  std::string s = "set terminal pngcairo noenhanced size " + std::to_string(640 * panels.size()) +
                  ",480\nset output " + gnuplot_quoted(path) + "\nset multiplot layout 1," + count +
                  "\nset grid\nset key below\n";
  for (const Panel& p : panels) {
    s += "set title " + gnuplot_quoted(p.title) + "\nset xlabel " + gnuplot_quoted(p.x_label) +
         "\nset ylabel " + gnuplot_quoted(p.y_label) + "\n";
    std::string plot = "plot ", points;
    char point[64];
    for (const Curve& c : p.curves) {
      if (!has_points(c)) continue;
      if (!points.empty()) plot += ", ";
      plot += c.x.size() < 40 ? "'-' with linespoints pointtype 7" : "'-' with lines";
      plot += " linewidth 2 title " + gnuplot_quoted(c.name);
      for (std::size_t i = 0; i < c.x.size() && i < c.y.size(); ++i) {
        if (!std::isfinite(c.x[i]) || !std::isfinite(c.y[i])) continue;
        std::snprintf(point, sizeof point, "%.9g %.9g\n", c.x[i], c.y[i]);
        points += point;
      }
      points += "e\n";
    }
    s += plot + "\n" + points;
  }
  return s + "unset multiplot\n";
}

/// Runs gnuplot with one argument, its input from one file and what it says into another. Returns its exit
/// status, or -1 with errno set when it could not be run.
inline int spawn_gnuplot(const char* argument, int in, int out) {
  posix_spawn_file_actions_t files;
  if ((errno = ::posix_spawn_file_actions_init(&files)) != 0) return -1;
  ::posix_spawn_file_actions_adddup2(&files, in, STDIN_FILENO);
  ::posix_spawn_file_actions_adddup2(&files, out, STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&files, out, STDERR_FILENO);
  const std::string name = "gnuplot";
  std::string given = argument;
  char* const arguments[] = {const_cast<char*>(name.c_str()), given.data(), nullptr};
  ::pid_t child = 0;
  const int fault = ::posix_spawnp(&child, name.c_str(), &files, nullptr, arguments, environ);
  ::posix_spawn_file_actions_destroy(&files);
  int status = 0;
  if ((errno = fault) != 0) return -1;
  while (::waitpid(child, &status, 0) < 0)
    if (errno != EINTR) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

/// Empty, or why gnuplot could not do what the script says. The script goes through a file: writing to a pipe
/// whose reader has given up would end the program.
inline std::string run_gnuplot(const std::string& script) {
  const File in(std::tmpfile(), std::fclose), out(std::tmpfile(), std::fclose);
  if (!in || !out || std::fwrite(script.data(), 1, script.size(), in.get()) != script.size() ||
      std::fseek(in.get(), 0, SEEK_SET) != 0)
    return std::string("cannot write a temporary file (") + std::strerror(errno) + ")";
  const int status = spawn_gnuplot("-", ::fileno(in.get()), ::fileno(out.get()));
  if (status == 0) return {};
  if (status < 0) return std::string("gnuplot could not be run (") + std::strerror(errno) + ")";
  std::rewind(out.get());
  char line[256];
  std::string said;  // the fault comes last, below an echo of the command
  while (std::fgets(line, sizeof line, out.get()) != nullptr)
    if (std::string_view(line).find_first_not_of(" \t\n") != std::string_view::npos) said = line;
  said.erase(said.find_last_not_of(" \t\n") + 1);
  if (!said.empty()) return "gnuplot failed: " + said.substr(said.find_first_not_of(" \t"));
  return "gnuplot failed with status " + std::to_string(status);
}

}  // namespace detail

/// Whether there is a gnuplot that `plot_png` can call.
inline bool have_gnuplot() {
  const detail::File in(std::tmpfile(), std::fclose), out(std::tmpfile(), std::fclose);
  return in && out && detail::spawn_gnuplot("--version", ::fileno(in.get()), ::fileno(out.get())) == 0;
}

namespace detail {

/// Has gnuplot draw what `script(file)` says into a file that then becomes `path`. Returns an empty string,
/// or why there is no picture.
template <class F>
std::string draw_png(const std::string& path, F script) {
  if (!have_gnuplot()) return "gnuplot is not installed (Debian and Ubuntu: gnuplot-nox)";
  struct stat info {};
  if (::stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode))
    return "cannot replace " + path + " (not a regular file)";  // /dev/null would become one
  const std::string part = path + ".part";  // gnuplot leaves half a file behind when it fails
  std::FILE* const probe = std::fopen(part.c_str(), "wb");
  if (probe == nullptr) return "cannot write " + part + " (" + std::strerror(errno) + ")";
  std::fclose(probe);
  std::string fault = run_gnuplot(script(part));
  if (fault.empty() && (::stat(part.c_str(), &info) != 0 || info.st_size == 0))
    fault = "gnuplot wrote nothing to " + part;
  if (fault.empty() && std::rename(part.c_str(), path.c_str()) != 0)
    fault = "cannot replace " + path + " (" + std::strerror(errno) + ")";
  if (!fault.empty()) std::remove(part.c_str());
  return fault;
}

}  // namespace detail

/// Draws panels side by side into the PNG file `path`. Returns an empty string, or why there is no picture:
/// a panel has no finite points, gnuplot is not installed, or it failed. A file that was there before is
/// replaced only by a finished picture.
inline std::string plot_png(const std::string& path, const std::vector<Panel>& panels) {
  if (panels.empty()) return "there is nothing to draw";
  for (const Panel& p : panels)
    if (!detail::has_points(p)) return "the panel '" + p.title + "' has no finite points";
  return detail::draw_png(path,
                          [&](const std::string& file) { return detail::gnuplot_script(file, panels); });
}

}  // namespace wengert::inline WENGERT_ISA::tools

// A CSV file that says when rows could not be written, instead of losing them in silence.
#pragma once

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>
#include <utility>

namespace example {

/// Rows of text. The first failure to open or write ends the file and is kept in `fault`.
class CsvLog {
 public:
  /// An empty path means no file, and no fault.
  CsvLog(std::string path, const std::string& header) : path_(std::move(path)) {
    if (path_.empty()) return;
    file_ = std::fopen(path_.c_str(), "w");
    if (file_ == nullptr) {
      fault_ = "cannot open " + path_ + " (" + std::strerror(errno) + ")";
      return;
    }
    row(header);
  }
  CsvLog(const CsvLog&) = delete;
  CsvLog& operator=(const CsvLog&) = delete;
  ~CsvLog() { close(); }

  /// Hands the row to the system at once: it survives a program that is killed.
  void row(const std::string& cells) {
    if (file_ == nullptr) return;
    if (std::fprintf(file_, "%s\n", cells.c_str()) < 0 || std::fflush(file_) != 0) give_up();
  }
  void close() {
    if (file_ != nullptr && std::fclose(std::exchange(file_, nullptr)) != 0) note_fault();
  }

  /// Whether every row so far has been written; otherwise `fault` says why not.
  bool is_sound() const { return fault_.empty(); }
  const std::string& fault() const { return fault_; }
  const std::string& path() const { return path_; }

 private:
  void note_fault() { fault_ = "cannot write " + path_ + " (" + std::strerror(errno) + ")"; }
  void give_up() {
    note_fault();
    std::fclose(std::exchange(file_, nullptr));
  }

  std::string path_, fault_;
  std::FILE* file_ = nullptr;
};

}  // namespace example

// Whether what a program printed reached somebody.
#pragma once

#include <cstdio>
#include <string>

namespace example {

/// Hands the standard output to the system; complains in the program's name, and is false, when not all of it
/// could be written.
inline bool output_is_written(const std::string& program) {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return true;
  std::fprintf(stderr, "%s: cannot write to the standard output; what was printed is incomplete\n",
               program.c_str());
  return false;
}

}  // namespace example

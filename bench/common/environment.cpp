#include "environment.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <spawn.h>
#include <stdexcept>
#include <thread>
#include <unistd.h>

#include <sys/wait.h>

namespace bench {
namespace {

// Debian's multiarch folder, where each BLAS has a folder of its own holding a libblas.so.3. The loader looks
// into LD_LIBRARY_PATH first, so a process can choose without changing the system's alternative.
const char* const kBlasRoot = "/usr/lib/x86_64-linux-gnu/";

bool processor_has(const std::string& flag) {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (line.starts_with("flags")) return (line + " ").find(" " + flag + " ") != std::string::npos;
  }
  return false;
}

// BLIS 0.9 counts the FMA units by the processor's brand name, which virtual machines hide; it then takes its
// AVX2 kernels at half the speed. Number 0 is skx, its AVX-512 configuration.
void add_blis_kernels(Setup& setup) {
  if (processor_has("avx512dq")) setup.variables.emplace_back("BLIS_ARCH_TYPE", "0");
}

// Freed memory stays with the process: without this glibc gives every large tensor back and pays page faults
// for the next one.
std::vector<std::pair<std::string, std::string>> common_variables(int threads) {
  const std::string count = std::to_string(threads);
  return {{"MALLOC_TRIM_THRESHOLD_", "1073741824"},
          {"MALLOC_MMAP_THRESHOLD_", "1073741824"},
          {"MALLOC_TOP_PAD_", "67108864"},
          {"OMP_NUM_THREADS", count},
          {"BLIS_NUM_THREADS", count},
          {"OPENBLAS_NUM_THREADS", count},
          {"WENGERT_NUM_THREADS", count}};
}

// This process's environment with a setup's variables in place of what they were.
std::vector<std::string> merged(const Setup& setup) {
  std::vector<std::string> result;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const std::string name = text.substr(0, text.find('='));
    const auto is_set = [&](const auto& variable) { return variable.first == name; };
    if (std::none_of(setup.variables.begin(), setup.variables.end(), is_set)) result.push_back(text);
  }
  for (const auto& [name, value] : setup.variables) result.push_back(name + "=" + value);
  return result;
}

}  // namespace

Setup plain_setup(int threads) { return {"system", common_variables(threads)}; }

std::vector<Setup> setups(int threads, const std::string& blas) {
  std::vector<Setup> found;
  const std::pair<const char*, const char*> folders[] = {{"openblas", "openblas-pthread"},
                                                         {"blis", "blis-openmp"}};
  for (const auto& [name, folder] : folders) {
    const std::string path = std::string(kBlasRoot) + folder;
    if (!std::filesystem::exists(path + "/libblas.so.3")) continue;
    if (blas != "all" && blas != name) continue;
    Setup setup{name, common_variables(threads)};
    const char* const inherited = std::getenv("LD_LIBRARY_PATH");
    setup.variables.emplace_back("LD_LIBRARY_PATH", inherited ? path + ":" + inherited : path);
    if (setup.name == "blis") add_blis_kernels(setup);
    setup.other_blas = !found.empty();
    found.push_back(std::move(setup));
  }
  if (found.empty()) found.push_back(plain_setup(threads));
  if (!processor_has("avx512dq")) return found;
  const std::size_t count = found.size();
  for (std::size_t i = 0; i < count; ++i) {
    Setup setup = found[i];
    setup.name += "+avx512";
    setup.variables.emplace_back("ATEN_CPU_CAPABILITY", "avx512");
    setup.other_isa = true;
    found.push_back(std::move(setup));
  }
  return found;
}

int run_self(const std::vector<std::string>& arguments, const Setup& setup,
             const std::function<void(const std::string&)>& on_line) {
  std::string self = std::filesystem::read_symlink("/proc/self/exe");
  std::vector<std::string> words = arguments;
  std::vector<char*> argv = {self.data()};
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  std::vector<std::string> variables = merged(setup);
  std::vector<char*> envp;
  for (std::string& variable : variables) envp.push_back(variable.data());
  envp.push_back(nullptr);

  int ends[2];
  if (pipe(ends) != 0) throw std::runtime_error("run_self: cannot make a pipe");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_addclose(&actions, ends[0]);
  posix_spawn_file_actions_addclose(&actions, ends[1]);
  pid_t child = 0;
  const int failure = posix_spawn(&child, self.c_str(), &actions, nullptr, argv.data(), envp.data());
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  if (failure != 0) {
    close(ends[0]);
    throw std::runtime_error("run_self: cannot start " + self);
  }

  std::string line;
  std::FILE* const stream = fdopen(ends[0], "r");
  for (int c = std::fgetc(stream); c != EOF; c = std::fgetc(stream)) {
    if (c != '\n') {
      line += static_cast<char>(c);
      continue;
    }
    on_line(line);
    line.clear();
  }
  std::fclose(stream);
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

std::string machine_description() {
  std::string model = "unknown processor";
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (line.starts_with("model name")) {
      model = line.substr(line.find(':') + 2);
      break;
    }
  }
#if defined(__clang__)
  const std::string compiler = "clang " __clang_version__;
#else
  const std::string compiler = "g++ " __VERSION__;
#endif
  return model +
         (processor_has("avx512f") ? " (AVX-512)"
          : processor_has("avx2")  ? " (AVX2)"
                                   : "") +
         ", " + std::to_string(std::thread::hardware_concurrency()) + " hardware threads, " + compiler;
}

}  // namespace bench

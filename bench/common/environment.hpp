// The surroundings a measurement runs in: environment variables that must be set before the first library is
// loaded (malloc, OpenMP, the choice of a BLAS), and the child process that has them.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace bench {

/// A named set of environment variables: one way to run the peers.
struct Setup {
  std::string name;
  std::vector<std::pair<std::string, std::string>> variables;
  bool other_blas = false;  ///< differs from the first setup in the BLAS
  bool other_isa = false;   ///< differs from the first setup in the instruction set of libtorch's own loops
};

/// The setups that this machine can offer at a number of threads: each BLAS found, and where the processor
/// has AVX-512 each of them again with libtorch's loops told to use it, because libtorch itself stays at
/// AVX2. `blas` is "all" or one name; where none is found there is one setup named "system".
std::vector<Setup> setups(int threads, const std::string& blas);

/// One setup with tuned malloc and threads, for programs built without a peer.
Setup plain_setup(int threads);

/// Runs this program again with arguments and a setup; gives every line of its output to `on_line`; returns
/// its status.
int run_self(const std::vector<std::string>& arguments, const Setup& setup,
             const std::function<void(const std::string&)>& on_line);

/// Processor, cores, compiler: the head of a result table.
std::string machine_description();

}  // namespace bench

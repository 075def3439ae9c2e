// What is compared: each case names the work, its sizes, and the ratios it has to reach.
// The exact arithmetic of a case, which every contestant has to follow, is written down in cases.cpp.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace bench {

/// A bound on `ours.part / reference.part`. The reference "self" means backward / forward of our own side.
struct Target {
  std::string reference;  ///< "libtorch", "onednn", "copy" or "self"
  std::string part;       ///< "forward", "backward", "step"
  double at_most = 0;
};

/// One piece of work that all contestants do.
struct Case {
  std::string name;  ///< unique: "seed/128", "op/tanh", "gemm/512x512x512/NT"
  std::string work;  ///< what a factory switches on: "seed", "mlp", "resnet18", "resnet20", "chain", "adamw",
                     ///< "op", "gemm"
  std::string detail;              ///< operator name of an "op", layout of a "gemm"
  std::vector<std::int64_t> size;  ///< meaning depends on the work
  std::vector<Target> targets;
  bool no_heap = false;           ///< a steady-state step of ours must not allocate
  bool varies_with_blas = false;  ///< a peer's time depends on the BLAS it runs on
  bool varies_with_isa = false;   ///< a peer's time depends on the instruction set of libtorch's own loops
};

/// All cases, in the order of the tables.
std::vector<Case> all_cases();

namespace seed_model {
inline constexpr std::int64_t kVocabulary = 100;
inline constexpr std::int64_t kTokens = 10;
inline constexpr std::int64_t kWidth = 32;     // of an embedding
inline constexpr std::int64_t kPositions = 2;  // two teams of five tokens
inline constexpr std::int64_t kGroup = 160;    // five embeddings
inline constexpr std::int64_t kHidden = 128;
inline constexpr float kRate = 0.01f;  // AdamW, everything else as PyTorch has it
}  // namespace seed_model

namespace mlp_model {
inline constexpr std::int64_t kInput = 784;
inline constexpr std::int64_t kHidden1 = 256;
inline constexpr std::int64_t kHidden2 = 128;
inline constexpr std::int64_t kClasses = 10;
inline constexpr float kRate = 1e-3f;  // Adam
}  // namespace mlp_model

namespace resnet_model {
inline constexpr float kRate = 0.05f;  // SGD, momentum 0.9, weight decay 1e-4
}  // namespace resnet_model

inline constexpr std::int64_t kChainOperators = 1000;

}  // namespace bench

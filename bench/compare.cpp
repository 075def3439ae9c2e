// Runs every case on this library and on its peers, in turns within one process, and prints times, ratios and
// verdicts. Each BLAS and each number of threads gets a process of its own, because both are settled when
// libraries are loaded.
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "common/cases.hpp"
#include "common/contestants.hpp"
#include "common/environment.hpp"
#include "common/report.hpp"
#include "common/timing.hpp"

namespace {

struct Options {
  std::vector<int> threads = {1, 2};
  std::vector<std::string> filters;
  std::string blas = "all";
  std::string csv;
  int rounds = bench::Plan{}.rounds;
  bool quick = false;
  bool markdown = false;
  bool list = false;
  std::string child;        // name of the setup this process was started with
  bool other_blas = false;  // this process: only cases that depend on the BLAS
  bool other_isa = false;   // this process: only cases that depend on the instruction set of libtorch's loops
};

bool is_chosen(const std::string& name, const std::vector<std::string>& filters) {
  if (filters.empty()) return true;
  for (const std::string& filter : filters) {
    if (name.find(filter) != std::string::npos) return true;
  }
  return false;
}

std::vector<bench::Case> chosen_cases(const Options& options) {
  std::vector<bench::Case> cases;
  for (bench::Case& work : bench::all_cases()) {
    if (is_chosen(work.name, options.filters)) cases.push_back(std::move(work));
  }
  return cases;
}

// The child's half: measures, and says every row on its standard output.
int measure_here(const Options& options) {
  const int threads = options.threads.front();
  bench::set_threads(threads);
  bench::Plan plan = options.quick ? bench::Plan::quick() : bench::Plan{};
  if (!options.quick) plan.rounds = options.rounds;
  std::printf("about,%s\n", bench::describe_contestants().c_str());
  for (const bench::Case& work : chosen_cases(options)) {
    if (options.other_blas && !work.varies_with_blas) continue;
    if (options.other_isa && !work.varies_with_isa) continue;
    std::printf("start,%s\n", work.name.c_str());
    std::fflush(stdout);
    const std::vector<bench::Contestant> contestants = bench::contestants(work, threads);
    for (bench::Measurement& result : bench::measure(contestants, plan)) {
      std::printf("row,%s\n", bench::to_csv({work.name, threads, options.child, std::move(result)}).c_str());
    }
    std::fflush(stdout);
  }
  return 0;
}

struct Gathered {
  std::vector<bench::Row> rows;
  std::vector<std::string> about;  // one line a setup and number of threads
  bool failed = false;
};

void gather(const Options& options, int threads, const bench::Setup& setup, Gathered& gathered) {
  std::vector<std::string> arguments = {"--child",   setup.name,
                                        "--threads", std::to_string(threads),
                                        "--rounds",  std::to_string(options.rounds)};
  for (const std::string& filter : options.filters) arguments.insert(arguments.end(), {"--filter", filter});
  if (options.quick) arguments.emplace_back("--quick");
  if (setup.other_blas) arguments.emplace_back("--other-blas");
  if (setup.other_isa) arguments.emplace_back("--other-isa");
  const std::string where =
      setup.name + ", " + std::to_string(threads) + (threads == 1 ? " thread" : " threads");
  const int status = bench::run_self(arguments, setup, [&](const std::string& line) {
    if (line.starts_with("row,")) gathered.rows.push_back(bench::from_csv(line.substr(4)));
    if (line.starts_with("about,")) gathered.about.push_back(where + ": " + line.substr(6));
    if (line.starts_with("start,"))
      std::fprintf(stderr, "\r\033[K%s: %s", where.c_str(), line.substr(6).c_str());
  });
  std::fputs("\r\033[K", stderr);
  if (status != 0) {
    std::fprintf(stderr, "compare: the run with %s ended with status %d\n", where.c_str(), status);
    gathered.failed = true;
  }
}

bool write_csv(const std::string& path, const std::vector<bench::Row>& rows) {
  std::FILE* const file = std::fopen(path.c_str(), "w");
  if (file == nullptr) {
    std::fprintf(stderr, "compare: cannot write %s; choose a folder that exists\n", path.c_str());
    return false;
  }
  std::fprintf(file, "%s\n", bench::csv_header().c_str());
  for (const bench::Row& row : rows) std::fprintf(file, "%s\n", bench::to_csv(row).c_str());
  return std::fclose(file) == 0;
}

int compare(const Options& options) {
  const std::vector<bench::Case> cases = chosen_cases(options);
  if (cases.empty()) {
    std::fprintf(stderr, "compare: no case has such a name; --list shows them all\n");
    return 2;
  }
  Gathered gathered;
  for (const int threads : options.threads) {
    const std::vector<bench::Setup> setups = bench::has_libtorch() ? bench::setups(threads, options.blas)
                                                                   : std::vector{bench::plain_setup(threads)};
    for (const bench::Setup& setup : setups) gather(options, threads, setup, gathered);
  }
  std::printf("%s\n", bench::machine_description().c_str());
  for (const std::string& line : gathered.about) std::printf("%s\n", line.c_str());
  std::printf("\nMedian milliseconds%s\n\n", options.quick ? " (smoke run: these numbers mean nothing)" : "");
  bench::times_table(cases, gathered.rows).print(stdout, options.markdown);
  std::printf("\nTargets\n\n");
  bench::targets_table(cases, gathered.rows).print(stdout, options.markdown);
  const std::vector<std::string> complaints = bench::disagreements(gathered.rows);
  if (!complaints.empty()) std::printf("\nNot the same work:\n");
  for (const std::string& complaint : complaints) std::printf("  %s\n", complaint.c_str());
  if (!options.csv.empty() && !write_csv(options.csv, gathered.rows)) return 1;
  return gathered.failed || !complaints.empty() ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app{
      "Times training steps, operators and matrix products against libtorch and oneDNN, side by side."};
  app.add_option("--threads", options.threads, "Numbers of threads to measure, one process each")
      ->delimiter(',')
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  app.add_option("--filter", options.filters,
                 "Only cases whose name contains this; may be given several times");
  app.add_option("--blas", options.blas, "BLAS below libtorch: all, openblas, blis")
      ->check(CLI::IsMember({"all", "openblas", "blis"}))
      ->capture_default_str();
  app.add_option("--rounds", options.rounds, "Turns each contestant gets")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option("--csv", options.csv, "Also write all rows, of every BLAS, to this file");
  app.add_flag("--markdown", options.markdown, "Print the tables as Markdown");
  app.add_flag("--quick", options.quick, "Two steps of everything: a smoke test, not a measurement");
  app.add_flag("--list", options.list, "Print the names of the cases and stop");
  app.add_option("--child", options.child)->group("");
  app.add_flag("--other-blas", options.other_blas)->group("");
  app.add_flag("--other-isa", options.other_isa)->group("");
  CLI11_PARSE(app, argc, argv);
  try {
    if (options.list) {
      for (const bench::Case& work : chosen_cases(options)) std::printf("%s\n", work.name.c_str());
      return 0;
    }
    return options.child.empty() ? compare(options) : measure_here(options);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "compare: %s\n", error.what());
    return 1;
  }
}

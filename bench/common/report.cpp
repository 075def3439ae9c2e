#include "report.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <set>
#include <stdexcept>

namespace bench {
namespace {

constexpr const char* kOurs = "wengert";

std::string number(double value, const char* format) {
  char text[48];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

// Four significant digits whatever the size: rows of 60 us and of 100 ms stand in one column.
std::string milliseconds(double seconds) {
  const double ms = seconds * 1e3;
  const char* const format = ms < 0.01 ? "%.5f" : ms < 0.1 ? "%.4f" : ms < 10 ? "%.3f" : "%.1f";
  return number(ms, format);
}

double part_of(const StepTimes& times, const std::string& part) {
  if (part == "forward") return times.forward;
  if (part == "backward") return times.backward;
  if (part == "optimizer") return times.optimizer;
  return times.step;
}

std::vector<std::string> split(const std::string& line) {
  std::vector<std::string> cells(1);
  for (const char c : line) {
    if (c == ',') {
      cells.emplace_back();
    } else {
      cells.back() += c;
    }
  }
  return cells;
}

const Row* find(const std::vector<Row>& rows, const std::string& name, int threads, const std::string& setup,
                const std::string& who) {
  for (const Row& row : rows) {
    if (row.name == name && row.threads == threads && row.setup == setup && row.measurement.who == who)
      return &row;
  }
  return nullptr;
}

// The run in which a contestant was fastest; null where it took no part.
const Row* fastest(const std::vector<Row>& rows, const std::string& name, int threads, const std::string& who,
                   const std::string& part) {
  const Row* best = nullptr;
  for (const Row& row : rows) {
    if (row.name != name || row.threads != threads || row.measurement.who != who) continue;
    if (best == nullptr || part_of(row.measurement.times, part) < part_of(best->measurement.times, part))
      best = &row;
  }
  return best;
}

std::set<int> thread_counts(const std::vector<Row>& rows) {
  std::set<int> counts;
  for (const Row& row : rows) counts.insert(row.threads);
  return counts;
}

struct Verdicts {
  Table table{{"work", "threads", "what", "measured", "at most", "peer's setup", "verdict"}, {}};
  void add(const std::string& work, int threads, const std::string& what, double measured, double at_most,
           const std::string& setup) {
    table.rows.push_back({work, std::to_string(threads), what, number(measured, "%.3f"),
                          number(at_most, "%.3f"), setup, measured <= at_most ? "PASS" : "short"});
  }
};

void judge(Verdicts& verdicts, const Case& work, const Target& target, int threads,
           const std::vector<Row>& rows) {
  if (target.reference == "self") {
    const Row* const ours = fastest(rows, work.name, threads, kOurs, "step");
    if (ours == nullptr) return;
    const StepTimes& t = ours->measurement.times;
    verdicts.add(work.name, threads, "backward / forward", t.backward / t.forward, target.at_most,
                 ours->setup);
    return;
  }
  const Row* const reference = fastest(rows, work.name, threads, target.reference, target.part);
  if (reference == nullptr) return;
  const Row* const ours = find(rows, work.name, threads, reference->setup, kOurs);
  if (ours == nullptr) return;
  verdicts.add(
      work.name, threads, target.part + " / " + target.reference,
      part_of(ours->measurement.times, target.part) / part_of(reference->measurement.times, target.part),
      target.at_most, reference->setup);
}

// Matrix products have one common target: the geometric mean of the ratios to oneDNN.
void judge_products(Verdicts& verdicts, const std::vector<Case>& cases, int threads,
                    const std::vector<Row>& rows) {
  std::map<std::string, std::pair<double, int>> sums;  // of logarithms, by layout and over all
  for (const Case& work : cases) {
    if (work.work != "gemm") continue;
    const Row* const reference = fastest(rows, work.name, threads, "onednn", "forward");
    if (reference == nullptr) continue;
    const Row* const ours = find(rows, work.name, threads, reference->setup, kOurs);
    if (ours == nullptr) continue;
    const double ratio = std::log(ours->measurement.times.forward / reference->measurement.times.forward);
    for (const std::string& key : {work.detail, std::string("all")}) {
      sums[key].first += ratio;
      ++sums[key].second;
    }
  }
  for (const auto& [layout, sum] : sums) {
    verdicts.add("gemm, geometric mean, " + layout, threads, "forward / onednn",
                 std::exp(sum.first / sum.second), 1.0, "-");
  }
}

bool agree(double a, double b) {
  constexpr double kRelative = 2e-3;
  constexpr double kAbsolute = 1e-5;
  return std::abs(a - b) <= kRelative * std::max(std::abs(a), std::abs(b)) + kAbsolute;
}

}  // namespace

std::string csv_header() {
  return "case,threads,setup,who,parts,forward_s,backward_s,optimizer_s,zero_s,step_s,heap,value,gradient_"
         "norm";
}

std::string to_csv(const Row& row) {
  const Measurement& m = row.measurement;
  std::string line = row.name + "," + std::to_string(row.threads) + "," + row.setup + "," + m.who + "," +
                     std::to_string(m.parts);
  for (const double value : {m.times.forward, m.times.backward, m.times.optimizer, m.times.zero, m.times.step,
                             m.heap_allocations, m.value, m.gradient_norm}) {
    line += "," + number(value, "%.9g");
  }
  return line;
}

Row from_csv(const std::string& line) {
  const std::vector<std::string> cells = split(line);
  if (cells.size() != split(csv_header()).size()) throw std::runtime_error("from_csv: not a row: " + line);
  const auto real = [&cells](std::size_t i) { return std::strtod(cells[i].c_str(), nullptr); };
  Row row;
  row.name = cells[0];
  row.threads = std::atoi(cells[1].c_str());
  row.setup = cells[2];
  row.measurement.who = cells[3];
  row.measurement.parts = static_cast<unsigned>(std::strtoul(cells[4].c_str(), nullptr, 10));
  row.measurement.times = {real(5), real(6), real(7), real(8), real(9)};
  row.measurement.heap_allocations = real(10);
  row.measurement.value = real(11);
  row.measurement.gradient_norm = real(12);
  return row;
}

void Table::print(std::FILE* out, bool markdown) const {
  std::vector<std::size_t> widths;
  for (const std::string& cell : head) widths.push_back(cell.size());
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  const auto print_row = [&](const std::vector<std::string>& row) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (markdown) std::fputs(i == 0 ? "| " : " | ", out);
      // The first column reads from the left, numbers stand on the right.
      std::fprintf(out, i == 0 ? "%-*s" : "%*s", static_cast<int>(widths[i]), row[i].c_str());
      if (!markdown && i + 1 < row.size()) std::fputs("  ", out);
    }
    std::fputs(markdown ? " |\n" : "\n", out);
  };
  print_row(head);
  std::string rule;
  for (std::size_t i = 0; i < widths.size(); ++i) {
    if (markdown) {
      rule += "|" + std::string(widths[i] + 1, '-') + (i == 0 ? "-" : ":");
    } else {
      rule += std::string(widths[i], '-') + (i + 1 < widths.size() ? "  " : "");
    }
  }
  std::fprintf(out, "%s%s\n", rule.c_str(), markdown ? "|" : "");
  for (const auto& row : rows) print_row(row);
}

Table times_table(const std::vector<Case>& cases, const std::vector<Row>& rows) {
  Table table{
      {"work", "threads", "who", "forward", "backward", "bwd/fwd", "optimizer", "zero", "step", "heap"}, {}};
  for (const Case& work : cases) {
    for (const int threads : thread_counts(rows)) {
      const Row* chosen = nullptr;
      for (const char* who : {"libtorch", "onednn", "copy", kOurs}) {
        if (chosen == nullptr) chosen = fastest(rows, work.name, threads, who, "step");
      }
      if (chosen == nullptr) continue;
      for (const char* who : {kOurs, "libtorch", "onednn", "copy"}) {
        const Row* const row = find(rows, work.name, threads, chosen->setup, who);
        if (row == nullptr) continue;
        const Measurement& m = row->measurement;
        const auto cell = [&m](unsigned part, double value) {
          return (m.parts & part) != 0 ? milliseconds(value) : std::string("-");
        };
        const bool both = (m.parts & kForward) != 0 && (m.parts & kBackward) != 0;
        table.rows.push_back({work.name, std::to_string(threads),
                              m.who == "libtorch" ? m.who + " (" + row->setup + ")" : m.who,
                              cell(kForward, m.times.forward), cell(kBackward, m.times.backward),
                              both ? number(m.times.backward / m.times.forward, "%.2f") : "-",
                              cell(kOptimize, m.times.optimizer), cell(kZero, m.times.zero),
                              milliseconds(m.times.step),
                              m.heap_allocations < 0 ? "-" : number(m.heap_allocations, "%.0f")});
      }
    }
  }
  return table;
}

Table targets_table(const std::vector<Case>& cases, const std::vector<Row>& rows) {
  Verdicts verdicts;
  for (const Case& work : cases) {
    for (const int threads : thread_counts(rows)) {
      for (const Target& target : work.targets) judge(verdicts, work, target, threads, rows);
      const Row* const ours = fastest(rows, work.name, threads, kOurs, "step");
      if (work.no_heap && ours != nullptr && ours->measurement.heap_allocations >= 0) {
        verdicts.add(work.name, threads, "heap allocations", ours->measurement.heap_allocations, 0,
                     ours->setup);
      }
    }
  }
  for (const int threads : thread_counts(rows)) judge_products(verdicts, cases, threads, rows);
  return verdicts.table;
}

std::vector<std::string> disagreements(const std::vector<Row>& rows) {
  std::vector<std::string> sentences;
  for (const Row& row : rows) {
    if (row.measurement.who != kOurs) continue;
    for (const char* who : {"libtorch", "onednn"}) {
      const Row* const other = find(rows, row.name, row.threads, row.setup, who);
      if (other == nullptr) continue;
      const Measurement& a = row.measurement;
      const Measurement& b = other->measurement;
      // Rounding differs with the order of sums; the mean of a large signed output is mostly rounding, hence
      // absolute.
      if (agree(a.value, b.value) && agree(a.gradient_norm, b.gradient_norm)) continue;
      sentences.push_back(row.name + ", " + std::to_string(row.threads) + " threads: " + a.who +
                          " has value " + number(a.value, "%.7g") + " and gradient norm " +
                          number(a.gradient_norm, "%.7g") + ", " + b.who + " " + number(b.value, "%.7g") +
                          " and " + number(b.gradient_norm, "%.7g"));
    }
  }
  return sentences;
}

}  // namespace bench

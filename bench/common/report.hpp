// Rows of results, the tables made of them, and the verdict on each target.
#pragma once

#include <cstdio>
#include <string>
#include <vector>

#include "cases.hpp"
#include "timing.hpp"

namespace bench {

/// One measurement and where it was taken.
struct Row {
  std::string name;  ///< of the case
  int threads = 1;
  std::string setup;  ///< of the process: the BLAS
  Measurement measurement;
};

/// Rows as comma-separated text: the form that child processes report in, and the file for later work.
std::string csv_header();
std::string to_csv(const Row& row);
Row from_csv(const std::string& line);

/// Cells that print as an aligned plain table, or as Markdown.
struct Table {
  std::vector<std::string> head;
  std::vector<std::vector<std::string>> rows;
  void print(std::FILE* out, bool markdown) const;
};

/// Every contestant of every case: milliseconds a part, backward over forward, heap allocations. Where
/// several setups were measured it shows the one in which the fastest peer was fastest, and what we took in
/// that same run.
Table times_table(const std::vector<Case>& cases, const std::vector<Row>& rows);

/// Every target of every case that was measured: what we have, what we must have, PASS or short.
Table targets_table(const std::vector<Case>& cases, const std::vector<Row>& rows);

/// Sentences about contestants that did not compute the same as the others; empty when all is well.
std::vector<std::string> disagreements(const std::vector<Row>& rows);

}  // namespace bench

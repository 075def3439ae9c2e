// A picture of images side by side with what a network took them for, wrong ones marked, drawn by gnuplot
// when it is installed. Floor: tools.
#pragma once

#include <span>

#include <wengert/core/tensor.hpp>
#include <wengert/tools/plot.hpp>

namespace wengert::inline WENGERT_ISA::tools {

/// How `image_grid_png` lays its images out.
struct ImageGridOptions {
  std::string title = {};
  Index columns = 8;
  Index side = 96;  ///< pixels of the picture that the longer side of an image takes
};

namespace detail {

/// A pixel's channel as 0..255; numbers count as 0..1, and what is not a number is black.
template <Scalar X>
int colour_level(X v) {
  if constexpr (std::same_as<X, Byte>) return v;
  const double d = static_cast<double>(v);
  return d > 0 ? static_cast<int>(std::min(d, 1.0) * 255 + 0.5) : 0;
}

/// Where the tiles of a grid lie, in pixels of the picture.
struct GridPlan {
  Index columns, rows, height, width;  // of the grid, and of one image
  double scale;                        // from pixels of an image to those of the picture
  static constexpr double gap = 14, caption = 34, edge = 14, heading = 40;  // around and above images

  double tile_width() const { return static_cast<double>(width) * scale + gap; }
  double tile_height() const { return static_cast<double>(height) * scale + gap + caption; }
};

inline constexpr const char* right_colour = "#2e7d32";
inline constexpr const char* wrong_colour = "#c62828";

inline void append_label(std::string& s, const std::string& text, double x, double y, const char* style) {
  char place[64];
  std::snprintf(place, sizeof place, " at %.2f,%.2f ", x, y);
  s += "set label " + gnuplot_quoted(text) + place + style + "\n";
}

template <Scalar X>
std::string image_grid_script(const std::string& path, const Tensor<X>& images,
                              std::span<const std::int64_t> predicted, std::span<const std::int64_t> labels,
                              std::span<const std::string_view> names, const ImageGridOptions& options) {
  const Shape& s = images.shape();
  const Index n = s[0], channels = s[3], columns = std::min(options.columns, n);
  const GridPlan grid{columns, (n + columns - 1) / columns, s[1], s[2],
                      static_cast<double>(options.side) / static_cast<double>(std::max(s[1], s[2]))};
  const double top = GridPlan::edge + (options.title.empty() ? 0 : GridPlan::heading);
  const double wide = static_cast<double>(grid.columns) * grid.tile_width() + 2 * GridPlan::edge;
  const double high = static_cast<double>(grid.rows) * grid.tile_height() + top + GridPlan::edge;
  char line[256];
  std::snprintf(line, sizeof line, "set terminal pngcairo noenhanced font 'Sans,10' size %.0f,%.0f\n", wide,
                high);
  std::string out = line;
  out += "set output " + gnuplot_quoted(path) + "\nunset border\nunset tics\nunset key\n";
  std::snprintf(line, sizeof line,
                "set lmargin 0\nset rmargin 0\nset tmargin 0\nset bmargin 0\nset xrange [0:%.2f]\n"
                "set yrange [%.2f:0]\n",
                wide, high);
  out += line;
  if (!options.title.empty())
    append_label(out, options.title, wide / 2, top - GridPlan::heading / 2, "center font 'Sans,14'");

  std::string plot = "plot ", pixels;
  for (Index i = 0; i < n; ++i) {
    const auto at = static_cast<std::size_t>(i);
    const bool right = predicted[at] == labels[at];
    const double left =
        GridPlan::edge + static_cast<double>(i % columns) * grid.tile_width() + GridPlan::gap / 2;
    const double upper = top + static_cast<double>(i / columns) * grid.tile_height() + GridPlan::gap / 2;
    const double w = static_cast<double>(grid.width) * grid.scale;
    const double h = static_cast<double>(grid.height) * grid.scale;
    const char* const colour = right ? right_colour : wrong_colour;
    std::snprintf(
        line, sizeof line,
        "set object rectangle from %.2f,%.2f to %.2f,%.2f front fs empty border lc rgb '%s' lw %s\n",
        left - 1.5, upper - 1.5, left + w + 1.5, upper + h + 1.5, colour, right ? "1" : "3");
    out += line;
    const auto name = [&](std::int64_t c) { return std::string(names[static_cast<std::size_t>(c)]); };
    std::snprintf(line, sizeof line, "center textcolor rgb '%s'", colour);
    append_label(out, name(predicted[at]), left + w / 2, upper + h + 11, line);
    if (!right)
      append_label(out, "is " + name(labels[at]), left + w / 2, upper + h + 25,
                   "center textcolor rgb '#555555' font 'Sans,9'");
    plot += i > 0 ? ", " : "";
    plot += "'-' using 1:2:3:4:5 with rgbimage";
    for (Index y = 0; y < grid.height; ++y)
      for (Index x = 0; x < grid.width; ++x) {
        const X* const p = images.data() + ((i * grid.height + y) * grid.width + x) * channels;
        const int red = colour_level(p[0]), green = channels == 3 ? colour_level(p[1]) : red,
                  blue = channels == 3 ? colour_level(p[2]) : red;
        std::snprintf(line, sizeof line, "%.2f %.2f %d %d %d\n",
                      left + (static_cast<double>(x) + 0.5) * grid.scale,
                      upper + (static_cast<double>(y) + 0.5) * grid.scale, red, green, blue);
        pixels += line;
      }
    pixels += "e\n";
  }
  return out + plot + "\n" + pixels;
}

}  // namespace detail

/// Draws images (N, H, W, 3) or (N, H, W, 1), bytes or numbers in 0..1, into the PNG file `path`, each with
/// the name of its predicted class below: framed green where that is its label, else red with "is <label>"
/// below. `names` are those of the classes from 0. Returns an empty string, or why there is no picture, as
/// `plot_png`. Throws ShapeError unless there is an image and a prediction and a label for each, IndexError
/// for a class without a name, ValueError for a grid without columns.
template <Scalar X>
std::string image_grid_png(const std::string& path, const Tensor<X>& images,
                           const Tensor<std::int64_t>& predicted, const Tensor<std::int64_t>& labels,
                           std::span<const std::string_view> names, const ImageGridOptions& options = {}) {
  const Shape& s = images.shape();
  if (s.rank() != 4 || s.size() == 0 || (s[3] != 1 && s[3] != 3))
    fail<ShapeError>("image_grid_png", "these are no images; images are ", s,
                     "; expected (N, H, W, 3) or (N, H, W, 1), not empty");
  if (predicted.shape() != Shape{s[0]} || labels.shape() != Shape{s[0]})
    fail<ShapeError>("image_grid_png", "numbers of images and classes differ; images are ", s,
                     ", predicted is ", predicted.shape(), ", labels are ", labels.shape(),
                     "; expected one class an image");
  if (options.columns < 1 || options.side < 1)
    fail<ValueError>("image_grid_png", "columns are ", options.columns, ", side is ", options.side,
                     "; expected at least 1 of both");
  const Tensor<std::int64_t> guesses = predicted.packed(), truths = labels.packed();
  for (const Tensor<std::int64_t>* classes : {&guesses, &truths})
    for (const std::int64_t c : classes->span())
      if (c < 0 || c >= static_cast<std::int64_t>(names.size()))
        fail<IndexError>("image_grid_png", "class ", c, " has no name; there are ", names.size(),
                         " names; expected 0..", static_cast<std::int64_t>(names.size()) - 1);
  const Tensor<X> x = images.packed();
  return detail::draw_png(path, [&](const std::string& file) {
    return detail::image_grid_script(file, x, guesses.span(), truths.span(), names, options);
  });
}

}  // namespace wengert::inline WENGERT_ISA::tools

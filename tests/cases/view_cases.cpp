// Rows of views and copies.
#include <wengert/ops/cast.hpp>
#include <wengert/ops/view.hpp>
#include <wengert/ops/view_expand.hpp>
#include <wengert/ops/view_slice.hpp>

#include "cases/case.hpp"

namespace cases {
namespace {

using wengert::IndexError;
using wengert::ShapeError;

// y of `shape` whose element at `at` is x's at `where(at)`.
template <class F>
Array picked(const Array& x, const Shape& shape, F where) {
  Array y(shape);
  for (Index k = 0; k < y.size(); ++k) y[k] = x(where(y.index(k)));
  return y;
}

Array same(const Array& x) { return x; }

const Rows same_order([] {
  row(
      "reshape",
      [](const auto& x) {
        return reshape(x, {6, -1});
      },
      real({2, 3, 4}))
      .reference([](const Array& x) {
        return Array({6, x.size() / 6}, x.v);
      })
      .resizable(0)
      .fault<ShapeError>(
          {{5}},
          "reshape: number of elements does not divide; x is (5), shape is (6, -1); expected a divisor of 5")
      .bench({{48, 32, 128}});
  row(
      "reshape/after_transpose", [](const auto& x) { return reshape(transpose(x), {-1}); }, real({3, 5}))
      .reference([](const Array& x) {
        return picked(x, {x.size()}, [&](Shape at) { return Shape{at[0] % x.dim(0), at[0] / x.dim(0)}; });
      })
      .resizable(0)
      .bench({{512, 256}});
  row(
      "flatten", [](const auto& x) { return flatten(x, 1, -2); }, real({2, 3, 2, 4}))
      .reference([](const Array& x) {
        return Array({x.dim(0), x.dim(1) * x.dim(2), x.dim(3)}, x.v);
      })
      .resizable(0)
      .fault<ShapeError>({{2, 3}},
                         "flatten: the last axis lies before the first; x is (2, 3), axes are 1 to -2; "
                         "expected first <= last")
      .bench({{32, 16, 16, 64}});
  row(
      "squeeze", [](const auto& x) { return squeeze(x); }, real({1, 3, 1, 4}))
      .reference([](const Array& x) {
        return Array({x.dim(1), x.dim(3)}, x.v);
      })
      .sizes(
          [](Index n) {
            return Shapes{{1, 3, 1, n == 1 ? 2 : n}};
          },
          0)
      .bench({{1, 256, 1, 256}});
  row(
      "squeeze/axis", [](const auto& x) { return squeeze(x, -2); }, real({2, 1, 4}))
      .reference([](const Array& x) {
        return Array({x.dim(0), x.dim(2)}, x.v);
      })
      .resizable(0)
      .fault<ShapeError>({{2, 3, 4}},
                         "squeeze: axis -2 has size 3; x is (2, 3, 4); expected an axis of size 1")
      .bench({{256, 1, 256}});
  row(
      "unsqueeze", [](const auto& x) { return unsqueeze(x, 1); }, real({3, 4}))
      .reference([](const Array& x) {
        return Array({x.dim(0), 1, x.dim(1)}, x.v);
      })
      .resizable(0)
      .fault<ShapeError>({{}}, "unsqueeze: axis 1 is out of range; rank is 1; expected -1..0")
      .bench({{256, 256}});
  row(
      "clone", [](const auto& x) { return clone(x); }, real({3, 4}))
      .reference(same)
      .resizable(0)
      .bench({{256, 256}});
  row(
      "contiguous", [](const auto& x) { return contiguous(x); }, real({3, 4}))
      .reference(same)
      .resizable(0)
      .bench({{256, 256}});
  row(
      "cast", []<class T>(const Tensor<T>& x) { return wengert::cast<T>(wengert::cast<double>(x)); },
      real({3, 4}))
      .reference(same)
      .resizable(0)
      .bench({{256, 256}});
});

const Rows other_order([] {
  row(
      "permute",
      [](const auto& x) {
        return permute(x, {2, -3, 1});
      },
      real({2, 3, 4}))
      .reference([](const Array& x) {
        return picked(x, {x.dim(2), x.dim(0), x.dim(1)}, [](Shape at) { return Shape{at[1], at[2], at[0]}; });
      })
      .resizable(0)
      .fault<ShapeError>({{2, 3}},
                         "permute: number of axes differs; x is (2, 3), order is (2, -3, 1); "
                         "expected every axis once")
      .bench({{32, 64, 128}});
  row(
      "transpose", [](const auto& x) { return transpose(x); }, real({2, 3, 5}))
      .reference([](const Array& x) {
        return picked(x, {x.dim(0), x.dim(2), x.dim(1)}, [](Shape at) { return Shape{at[0], at[2], at[1]}; });
      })
      .resizable(0)
      .fault<ShapeError>({{3}},
                         "transpose: the rank is too low; x is (3); expected a matrix or a batch of them")
      .bench({{8, 256, 256}});
  row(
      "transpose/axes", [](const auto& x) { return transpose(x, 0, -1); }, real({2, 3, 5}))
      .reference([](const Array& x) {
        return picked(x, {x.dim(2), x.dim(1), x.dim(0)}, [](Shape at) { return Shape{at[2], at[1], at[0]}; });
      })
      .resizable(0)
      .fault<ShapeError>({{}}, "transpose: axis 0 is out of range; rank is 0; expected no axis")
      .bench({{64, 32, 64}});
});

const Rows parts([] {
  row(
      "slice", [](const auto& x) { return slice(x, 1, 1, -1); }, real({3, 5, 4}))
      .reference([](const Array& x) {
        return picked(x, {x.dim(0), x.dim(1) - 2, x.dim(2)}, [](Shape at) {
          return Shape{at[0], at[1] + 1, at[2]};
        });
      })
      .resizable(0)
      .fault<ShapeError>({{3}}, "slice: axis 1 is out of range; rank is 1; expected -1..0")
      .bench({{64, 64, 64}});
  row(
      "slice/first_axis", [](const auto& x) { return slice(x, 0, -2); }, real({5, 4}))
      .reference([](const Array& x) {
        return picked(x, {2, x.dim(1)}, [&](Shape at) { return Shape{at[0] + x.dim(0) - 2, at[1]}; });
      })
      .resizable(0)
      .bench({{512, 512}});
  row(
      "slice/step", [](const auto& x) { return slice(x, -1, 1, wengert::axis_end, 3); }, real({3, 8}))
      .reference([](const Array& x) {
        return picked(x, {x.dim(0), (x.dim(1) + 1) / 3}, [](Shape at) {
          return Shape{at[0], 1 + 3 * at[1]};
        });
      })
      .resizable(0)
      .bench({{256, 512}});
  row(
      "select", [](const auto& x) { return select(x, 1, -2); }, real({2, 4, 3}))
      .reference([](const Array& x) {
        return picked(x, {x.dim(0), x.dim(2)}, [&](Shape at) { return Shape{at[0], x.dim(1) - 2, at[1]}; });
      })
      .resizable(0)
      .fault<IndexError>({{2, 1, 3}},
                         "select: index -2 is out of range; x is (2, 1, 3), axis 1; expected -1..0")
      .bench({{64, 64, 64}});
  row(
      "split/parts", [](const auto& x) { return wengert::split<3>(x, 1)[1]; }, real({2, 6, 3}))
      .reference([](const Array& x) {
        const Index n = x.dim(1) / 3;
        return picked(x, {x.dim(0), n, x.dim(2)}, [&](Shape at) { return Shape{at[0], at[1] + n, at[2]}; });
      })
      .resizable(0)
      .fault<ShapeError>({{2, 5}},
                         "split: the axis does not divide; x is (2, 5), axis 1, parts are 3; "
                         "expected a multiple of 3")
      .bench({{64, 192, 16}});
  row(
      "split/sizes",
      [](const auto& x) {
        return split(x, {1, 3, 2})[1];
      },
      real({6, 4}))
      .reference([](const Array& x) {
        return picked(x, {3, x.dim(1)}, [](Shape at) { return Shape{at[0] + 1, at[1]}; });
      })
      .resizable(0)
      .allocates()
      .bench({{6, 4096}});
  row(
      "split/size", [](const auto& x) { return split(x, 2).back(); }, real({5, 4}))
      .reference([](const Array& x) {
        return picked(x, {1, x.dim(1)}, [](Shape at) { return Shape{at[0] + 4, at[1]}; });
      })
      .resizable(0)
      .allocates()
      .bench({{5, 4096}});
  row(
      "chunk", [](const auto& x) { return chunk(x, 3, -1)[1]; }, real({2, 7}))
      .reference([](const Array& x) {
        const Index size = (x.dim(1) + 2) / 3, n = std::min(size, x.dim(1) - size);
        return picked(x, {x.dim(0), n}, [&](Shape at) { return Shape{at[0], at[1] + size}; });
      })
      .resizable(2)
      .allocates()
      .bench({{64, 1024}});
});

template <class F>
auto stretches(F to) {
  return [to](const Array& x) {
    Array y(to(x));
    for (Index k = 0; k < y.size(); ++k) y[k] = x.stretched(y.index(k));
    return y;
  };
}

const Rows expanded([] {
  row(
      "expand/front",
      [](const auto& x) {
        return expand(x, {6, 3, -1});
      },
      real({3, 4}))
      .reference(stretches([](const Array& x) {
        return Shape{6, 3, x.dim(1)};
      }))
      .resizable(0)
      .fault<ShapeError>({{2, 4}},
                         "expand: x does not stretch to the shape; x is (2, 4), shape is (6, 3, -1); "
                         "expected equal dimensions, or 1 in x, aligned at the back")
      .bench({{3, 4096}});
  row(
      "expand/back",
      [](const auto& x) {
        return expand(x, {x.dim(0), x.dim(1), 37});
      },
      real({3, 4, 1}))
      .reference(stretches([](const Array& x) {
        return Shape{x.dim(0), x.dim(1), 37};
      }))
      .sizes(
          [](Index n) {
            return Shapes{{2, n, 1}};
          },
          0)
      .bench({{64, 64, 1}});
  row(
      "expand/between",
      [](const auto& x) {
        return expand(x, {x.dim(0), 5, x.dim(2)});
      },
      real({3, 1, 4}))
      .reference(stretches([](const Array& x) {
        return Shape{x.dim(0), 5, x.dim(2)};
      }))
      .sizes(
          [](Index n) {
            return Shapes{{2, 1, n}};
          },
          0)
      .bench({{64, 1, 256}});
  row(
      "expand/alternating",
      [](const auto& x) {
        return expand(x, {2, x.dim(1), 3, x.dim(3)});
      },
      real({1, 3, 1, 4}))
      .reference(stretches([](const Array& x) {
        return Shape{2, x.dim(1), 3, x.dim(3)};
      }))
      .sizes(
          [](Index n) {
            return Shapes{{1, 3, 1, n}};
          },
          0)
      .bench({{1, 64, 1, 256}});
  row(
      "expand/nothing", [](const auto& x) { return expand(x, x.shape()); }, real({3, 4}))
      .reference(same)
      .resizable(0)
      .bench({{256, 256}});
  row(
      "broadcast_to",
      [](const auto& x) {
        return broadcast_to(x, {7, 11});
      },
      real({}))
      .reference(stretches([](const Array&) {
        return Shape{7, 11};
      }))
      .fault<ShapeError>({{3}},
                         "broadcast_to: x does not stretch to the shape; x is (3), shape is (7, 11); "
                         "expected equal dimensions, or 1 in x, aligned at the back")
      .bench({{}});
});

}  // namespace
}  // namespace cases

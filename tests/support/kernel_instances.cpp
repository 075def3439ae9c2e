// The kernels that WENGERT_EXTERN_KERNELS leaves out of the tests' own units.
#define WENGERT_INSTANTIATE_KERNELS
#include <wengert/kernels/conv.hpp>

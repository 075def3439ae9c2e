// Counts the heap allocations of the whole process, libraries included. Only programs that link
// heap_counter.cpp have the hooks; they count nothing else and change nothing.
#pragma once

namespace bench {

/// Calls of malloc, calloc, realloc and the aligned forms so far, or -1 on a system where they cannot be
/// hooked.
long long heap_allocations();

}  // namespace bench

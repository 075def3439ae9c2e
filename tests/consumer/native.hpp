// What the native unit offers; no type of the library crosses, since the two units have different ones.
#pragma once

const char* native_simd_name();
bool native_differentiates();

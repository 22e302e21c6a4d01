#pragma once
// Adds what many tests include to cmake/precompiled.hpp.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include "cmake/precompiled.hpp"

#pragma once
// As cmake/precompiled.hpp, for tests.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include "cmake/precompiled.hpp"

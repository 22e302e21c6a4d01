/// \file
/// The version, as the build gives it.
#pragma once

#ifndef CHORALE_VERSION
#define CHORALE_VERSION "unknown"
#endif

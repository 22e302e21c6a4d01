#include "chorale/chorale.h"

int32_t chorale_abi(void) { return CHORALE_ABI; }
const char* chorale_version(void) { return CHORALE_VERSION; }

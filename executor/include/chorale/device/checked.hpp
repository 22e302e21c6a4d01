#pragma once
// With CHORALE_CHECKED = 1 ranks check each other's messages. A sender says how long a message is and how
// many groups move it, and the receiver compares. Without the check, two ranks that disagree would hang or
// mix up their data. It costs one word per message. Groups also check that no other group uses their channel.
// The default is 0 if NDEBUG is defined, else 1.

#if !defined(CHORALE_CHECKED)
#if defined(NDEBUG)
#define CHORALE_CHECKED 0
#else
#define CHORALE_CHECKED 1
#endif
#endif

#pragma once
// This switch decides whether ranks check each other. Senders say, and receivers check, how long a message is
// and how many groups move it, because two ranks that differ there would hang or mix up their data. It costs
// one word a message. Groups also check whether another group was on their channel.

#if !defined(CHORALE_CHECKED)
#if defined(NDEBUG)
#define CHORALE_CHECKED 0
#else
#define CHORALE_CHECKED 1
#endif
#endif

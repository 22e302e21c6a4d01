#pragma once
// Whether ranks check each other. Senders say, and receivers check, how long a message is and how many groups
// move it: two ranks that differ there would hang or mix up their data. One word a message. And groups see
// whether another one was on their channel.

#if !defined(CHORALE_CHECKED)
#if defined(NDEBUG)
#define CHORALE_CHECKED 0
#else
#define CHORALE_CHECKED 1
#endif
#endif

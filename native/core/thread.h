// thread.h: creation and naming of engine threads.
#ifndef DQI_THREAD_H
#define DQI_THREAD_H

#include <pthread.h>

// Starts a thread with signals blocked; attr may be NULL. Returns DQ_OK or a system error.
int dqi_thread_start(pthread_t *t, const pthread_attr_t *attr, void *(*fn)(void *), void *arg);
// Names the calling thread for top -H, gdb and the live view: "poll rx_q_0", truncated to 15 characters.
void dqi_thread_name(const char *does, const char *name);

#endif

// thread.h: threads of the engine.
#ifndef DQI_THREAD_H
#define DQI_THREAD_H

#include <pthread.h>

// Starts a thread that takes no signals; attr: NULL, or its attributes. DQ_OK or a system error.
int dqi_thread_start(pthread_t *t, const pthread_attr_t *attr, void *(*fn)(void *), void *arg);
// Names the calling thread for top -H, gdb and our own live view: "poll rx_q_0", cut at 15 characters.
void dqi_thread_name(const char *does, const char *name);

#endif

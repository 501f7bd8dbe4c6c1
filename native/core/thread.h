// thread.h: threads of the engine.
#ifndef DQI_THREAD_H
#define DQI_THREAD_H

#include <pthread.h>

// Starts a thread that takes no signals; attr: NULL, or its attributes. DQ_OK or a system error.
int dqi_thread_start(pthread_t *t, const pthread_attr_t *attr, void *(*fn)(void *), void *arg);

#endif

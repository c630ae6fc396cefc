/* Counts what a process asks the C library and the system for. Loaded ahead of the C library. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <sys/types.h>

extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);

static long count;

static void one(void) { __atomic_add_fetch(&count, 1, __ATOMIC_RELAXED); }
long jk_allocations(void) { return count; }
void *malloc(size_t size) { one(); return __libc_malloc(size); }
void *calloc(size_t number, size_t size) { one(); return __libc_calloc(number, size); }
void *realloc(void *memory, size_t size) { one(); return __libc_realloc(memory, size); }
void *memalign(size_t line, size_t size) { one(); return __libc_memalign(line, size); }
void *aligned_alloc(size_t line, size_t size) { return memalign(line, size); }

int posix_memalign(void **place, size_t line, size_t size) {
    *place = memalign(line, size);
    return *place ? 0 : 12;
}

void *mmap(void *at, size_t size, int may, int how, int file, off_t from) {
    static void *(*own)(void *, size_t, int, int, int, off_t);
    if (!own) own = (void *(*)(void *, size_t, int, int, int, off_t))dlsym(RTLD_NEXT, "mmap");
    one();
    return own(at, size, may, how, file, from);
}

package kernel

import (
	"debug/elf"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// mathCalls are functions of C's math.h, each also with the suffixes f and l.
const mathCalls = `acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh erf erfc exp exp10 exp2 expm1 fabs fdim floor fma fmax fmin fmod
	frexp hypot ilogb j0 j1 jn ldexp lgamma llrint llround log log10 log1p log2 logb lrint lround modf nan nearbyint nextafter nexttoward pow remainder
	remquo rint round scalbln scalbn sin sincos sinh sqrt tan tanh tgamma trunc y0 y1 yn`

// hostCalls are the other C and C++ library functions available to kernels on the host: memory, text, output, and functions called by generated code
// and host.h. None of them opens a file, starts a program or changes a mapping.
const hostCalls = `memchr memcmp memcpy memmove mempcpy memset strchr strcmp strcpy strlen strncmp strncpy strnlen strrchr
	__memcpy_chk __memmove_chk __memset_chk __strcpy_chk __strncpy_chk
	printf puts putchar fprintf fputc fputs fwrite putc fflush stdout stderr sprintf snprintf vprintf vfprintf vsnprintf
	__printf_chk __fprintf_chk __sprintf_chk __snprintf_chk __vsnprintf_chk
	abs labs llabs div ldiv abort __assert_fail malloc calloc realloc free aligned_alloc qsort bsearch
	_Znwm _Znam _ZdlPv _ZdlPvm _ZdaPv _ZdaPvm __cxa_pure_virtual __gxx_personality_v0 _Unwind_Resume __cxa_begin_catch __cxa_end_catch
	__cxa_rethrow __cxa_allocate_exception __cxa_free_exception __cxa_throw __cxa_throw_bad_array_new_length __cxa_guard_acquire __cxa_guard_release __cxa_guard_abort
	__errno_location __tls_get_addr __stack_chk_fail __signbit __signbitf __signbitl __isnan __isnanf __isinf __isinff __finite __finitef
	__fpclassify __fpclassifyf __fpclassifyl
	clock_gettime clock time nanosleep usleep sched_yield getcontext makecontext swapcontext`

var allowedCalls = func() map[string]bool {
	all := map[string]bool{}
	for _, name := range strings.Fields(mathCalls) {
		for _, suffix := range []string{"", "f", "l"} {
			all[name+suffix] = true
			all["__"+name+suffix+"_finite"] = true
		}
	}
	for _, name := range strings.Fields(hostCalls) {
		all[name] = true
	}
	return all
}()

// arithmetic matches functions of libgcc for operations without an instruction, such as __popcountdi2 and __floattisf.
var arithmetic = regexp.MustCompile(`^__[a-z]+(si|di|ti|hf|sf|df|xf|tf|sc|dc|xc|tc)[234]$|^__float(un)?[sdt]i[hsdxt]f$|^__fix(uns)?[hsdxt]f[sdt]i$`)

// allowed reports whether a kernel may use an external symbol. _ZSt is the prefix of free functions of std, such as those that throw.
func allowed(symbol string) bool {
	return allowedCalls[symbol] || strings.HasPrefix(symbol, "_ZSt") || arithmetic.MatchString(symbol)
}

// allowedLibraries are the name prefixes of libraries that a host library may depend on.
var allowedLibraries = []string{"libc.", "libm.", "libgcc_s.", "libstdc++.", "libc++.", "libc++abi.", "ld-linux", "ld-musl"}

// checkLibrary rejects a host library that runs code when it is loaded or unloaded, or that uses functions other than the allowed ones, such as
// system(3).
func checkLibrary(path string) error {
	f, err := elf.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	for _, tag := range []elf.DynTag{elf.DT_INIT, elf.DT_FINI, elf.DT_INIT_ARRAY, elf.DT_FINI_ARRAY, elf.DT_PREINIT_ARRAY} {
		if found, err := f.DynValue(tag); err != nil || len(found) > 0 {
			return fmt.Errorf("its source has code that runs before or after the kernel: a constructor, a destructor, or a global variable that needs one " +
				"(here and in CUDA globals begin as constants)")
		}
	}
	needed, err := f.ImportedLibraries()
	if err != nil {
		return err
	}
	for _, name := range needed {
		if !slices.ContainsFunc(allowedLibraries, func(allowed string) bool { return strings.HasPrefix(name, allowed) }) {
			return fmt.Errorf("its source needs the library %q, and a kernel has C's and C++'s alone", name)
		}
	}
	return checkSymbols(f)
}

func checkSymbols(f *elf.File) error {
	symbols, err := f.DynamicSymbols()
	if err != nil {
		return err
	}
	own, err := f.Symbols()
	if err != nil {
		return err
	}
	for _, symbol := range slices.Concat(symbols, own) {
		if elf.ST_TYPE(symbol.Info) == elf.STT_GNU_IFUNC {
			return fmt.Errorf("its source has the indirect function %q, which runs when the kernel is loaded", symbol.Name)
		}
	}
	var refused []string
	for _, symbol := range symbols {
		if symbol.Section == elf.SHN_UNDEF && !allowed(symbol.Name) {
			refused = append(refused, symbol.Name)
		}
	}
	if len(refused) > 0 {
		return fmt.Errorf("its source uses %s, which a kernel on the host can't call; hint: it has functions of math.h, string.h and printf, "+
			"and neither files, nor the network, nor other programs", strings.Join(refused, ", "))
	}
	return nil
}

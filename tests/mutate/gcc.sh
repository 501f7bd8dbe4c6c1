#!/bin/sh
# gcc with a memory, first on the PATH of a run of faults: one fault changes one file of C, and compiling the whole
# engine again costs minutes. An object is known by its flags, folders left out, and by what is compiled: a file of the
# engine by its text and all headers of the engine, any other by its preprocessed source.
# MUTATE_GCC is the real compiler, MUTATE_OBJECTS the folder of objects.
object= source= compile= flags=
last=
for a; do
    if [ "$last" = -o ]; then
        object=$a
    elif [ "$last" != -I ]; then
        case $a in
        -c) compile=1 ;;
        *.c) source=$a ;;
        -o | -I* | *prefix-map=* | -frandom-seed=*) ;;
        *) flags="$flags $a" ;;
        esac
    fi
    last=$a
done
[ "$compile" ] && [ -f "$source" ] && [ "$object" ] && [ "$object" != /dev/null ] || exec "$MUTATE_GCC" "$@"
folder=$(cd "$(dirname "$source")" && pwd)

# The same call, to preprocess: without -c, and to the standard output.
preprocess() {
    for a; do
        shift
        case $a in
        -c) continue ;;
        "$object") a=- ;;
        esac
        set -- "$@" "$a"
    done
    "$MUTATE_GCC" -E -P "$@"
}
known=$MUTATE_OBJECTS/$({
    echo "$flags"
    case $folder in
    */tests/*) preprocess "$@" 2>/dev/null ;;
    */native | */native/*)
        engine=${folder%%/native/*}
        cat "$source"
        find "${engine%/native}/native" -name '*.h' -print0 | sort -z | xargs -0 cat
        ;;
    *) preprocess "$@" 2>/dev/null ;;
    esac
} | sha256sum | cut -c 1-64)
[ -f "$known" ] && exec cp "$known" "$object"
"$MUTATE_GCC" "$@" || exit
cp "$object" "$known.$$" && mv "$known.$$" "$known"

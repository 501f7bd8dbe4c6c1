#!/bin/sh
# gcc with a memory, first on the PATH of a run of faults: one fault changes one file of C, and compiling the whole
# engine again costs minutes. An object is known by its preprocessed source and its flags, folders left out.
# MUTATE_GCC is the real compiler, MUTATE_OBJECTS the folder of objects.
object= source= compile= flags=
last=
for a; do
    if [ "$last" = -o ]; then
        object=$a
    else
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

# The same call, to preprocess: without -c, and to the standard output.
key() {
    for a; do
        shift
        case $a in
        -c) continue ;;
        "$object") a=- ;;
        esac
        set -- "$@" "$a"
    done
    { echo "$flags" && "$MUTATE_GCC" -E -P "$@"; } | sha256sum | cut -c 1-64
}
known=$MUTATE_OBJECTS/$(key "$@" 2>/dev/null)
[ -f "$known" ] && exec cp "$known" "$object"
"$MUTATE_GCC" "$@" || exit
cp "$object" "$known.$$" && mv "$known.$$" "$known"

#compdef h5fs
# Completion of h5fs for zsh. The program tells what fits: `h5fs --complete` ends with 0 if that is
# all, and otherwise names of files fit, too.
_h5fs() {
    local found line word files=0 done=1
    local -a ends endings opens openings
    found=$("${~words[1]}" --complete zsh "${(@Q)words[2,CURRENT-1]}" "${(Q)PREFIX}" 2> /dev/null)
    files=$?
    for line in "${(@f)found}"; do
        word=${line%%$'\t'*}
        case $word in
            ('') ;;
            (*[/=,]) opens+=("$word"); openings+=("${line/$'\t'/  -- }") ;;
            (*) ends+=("$word"); endings+=("${line/$'\t'/  -- }") ;;
        esac
    done
    (( ! $#ends )) || { compadd -l -d endings -a -- ends && done=0 }
    (( ! $#opens )) || { compadd -S '' -l -d openings -a -- opens && done=0 }
    (( ! files )) || { _files && done=0 }
    return done
}
# The file is the function when zsh loads it by its name, and defines it when it is sourced.
if [[ $funcstack[1] == _h5fs ]]; then _h5fs "$@"; else compdef _h5fs h5fs; fi

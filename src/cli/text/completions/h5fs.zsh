#compdef h5fs
# Completion of h5fs for zsh. `h5fs --complete` prints the candidates. Exit status 0 means that
# there are no others. Otherwise, file names are candidates too.
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
# If zsh autoloads this file, the file is the body of the function. If the file is sourced, it defines
# the function.
if [[ $funcstack[1] == _h5fs ]]; then _h5fs "$@"; else compdef _h5fs h5fs; fi

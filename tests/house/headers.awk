# headers.awk HEADER...: for each its arguments to clang: the first of `sets`, precompiled in `before`, that it includes whole, itself
# or through other headers below `root`, and HEADER. What a header includes anyway can be parsed before it: it stands alone no less.
FNR == 1 { file = header[++headers] = substr(FILENAME, length(root) + 2) }
/^#include [<"]/ { gsub(/[<>"]/, "", $2); of[file] = of[file] " " $2 }
function reach(header,  names, i, n) {
  if (header in seen) return
  seen[header] = 1
  n = split(of[header], names, " ")
  for (i = 1; i <= n; ++i) reach(names[i])
}
END {
  count = split(sets, set, ";")
  for (h = 1; h <= headers; ++h) {
    split("", seen)
    reach(header[h])
    delete seen[header[h]]
    for (s = 1; s <= count; ++s) {
      n = split(set[s], names, " ")
      for (i = 1; i <= n && names[i] in seen; ++i) continue
      if (i > n) break
    }
    print (s > count ? "" : "-include-pch " before "/" s ".pch ") root "/" header[h]
  }
}

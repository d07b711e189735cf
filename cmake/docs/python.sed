# `#:` after a field is its description; the star that ends the positional parameters is no parameter.
s|#: |##< |
s|^ *\*,$||
s|, \*, |, |

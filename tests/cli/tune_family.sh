# A run of one family takes the winner's place only where its best is clearly faster than the winner
# of another family, and says so where it is not (both were not in the same rounds): what is printed as
# the winner is what is stored.
. "$TESTS/cli/family.sh"
also() { # also NAME COST: a family like tiny with one variant
    sed -e "s/tiny/$1/g" -e "s/300, 200, 100, 400/$2/" -e "s/COST = 300/COST = $2/" -e '/BUG.*what goes/s/"none".*crash"/"none"/' \
        my/spaces/fake/tiny.lua >my/spaces/fake/$1.lua
    cp my/templates/fake/tiny.c my/templates/fake/$1.c
}
tune() {
    echo "--- $1"
    attntune-fake tune $problem $mine --budget 60s --search exhaustive --family $1 --format csv 2>&1 | grep -v '^fake 1/1\|^fake/\|again: ' | cut -d, -f1-3,13
    attntune-fake db best --path my --format csv | sed 1d | cut -d, -f6,12
}
also near 95
also slow 300
also fast 50
for family in tiny slow near slow fast; do tune $family; done

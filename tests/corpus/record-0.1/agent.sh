#!/bin/sh
n=$(($(cat .count 2>/dev/null || echo 0) + 1)); echo $n > .count
case $n in
 1) echo one > one.txt; echo "Summary: Wrote one.txt"; echo "3 passed in 0.1s";;
 2) echo two > two.txt; echo '<promise>SUCCESS</promise>';;
 3|4) echo "broken" >&2; exit 7;;
 5) echo five > five.txt; echo "Going on";;
 6) echo six > six.txt; kill -INT $PPID; kill -INT $(cat .rooda/lock.json 2>/dev/null | sed 's/.*"pid": *\([0-9]*\).*/\1/'); sleep 30;;
 *) echo end > end.txt; echo '<promise>SUCCESS</promise>';;
esac

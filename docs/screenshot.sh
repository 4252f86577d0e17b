#!/bin/sh
# Takes the README's picture: runs the demo on a throw-away server and photographs the finding "lost update" in the report
# that it wrote. "make screenshot" calls it.
#
#     docs/screenshot.sh ISOTAP PNG
#
# It needs what "make demo" needs, and Chromium (on Debian: apt-get install chromium fonts-dejavu). CHROMIUM names another
# program than those that it looks for.
set -eu

isotap=$(realpath "$1")
png=$(realpath -m "$2")
width=1200
height=1360

for browser in "${CHROMIUM:-}" chromium chromium-browser google-chrome; do
	[ -n "$browser" ] && command -v "$browser" >/dev/null && break
	browser=
done
if [ -z "$browser" ]; then
	echo "screenshot: no Chromium found (apt-get install chromium fonts-dejavu), and CHROMIUM names none" >&2
	exit 1
fi

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
"$isotap" demo --html "$dir/report.html"
finding=$(grep -o '"#finding-[0-9]*">lost update<' "$dir/report.html" | head -1 | cut -d'"' -f2)
if [ -z "$finding" ]; then
	echo "screenshot: the demo's report has no lost update" >&2
	exit 1
fi
# A picture always begins at a page's top. In a frame, the report stands where its finding begins.
cat >"$dir/frame.html" <<EOF
<!doctype html><title>isotap</title>
<style>body { margin: 0 } iframe { border: 0; width: ${width}px; height: ${height}px; display: block }</style>
<iframe src="report.html$finding" scrolling="no"></iframe>
EOF
sandbox=
[ "$(id -u)" != 0 ] || sandbox=--no-sandbox # Chromium's own does not work for root
"$browser" --headless $sandbox --disable-gpu --hide-scrollbars --force-device-scale-factor=1 --user-data-dir="$dir/profile" \
	--window-size="$width,$height" --screenshot="$png" "file://$dir/frame.html" 2>"$dir/browser.log" ||
	{ cat "$dir/browser.log" >&2; exit 1; }
[ -s "$png" ] || { cat "$dir/browser.log" >&2; exit 1; }
echo "screenshot: $png"

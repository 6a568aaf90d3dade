package agora

import (
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// checkForm returns an [InvalidRequest] error where an id could be confused with another one that is spelled alike: it
// is refused and not changed, as an id arrives as it was sent.
func checkForm(s string) error {
	if s[0] == ' ' || s[len(s)-1] == ' ' {
		return Errorf(InvalidRequest, "agent id begins or ends with a space")
	}
	if isASCII(s) {
		return nil
	}
	if !norm.NFC.IsNormalString(s) {
		return Errorf(InvalidRequest, "agent id is not in Unicode's normalization form C")
	}
	if blank(firstRune(s)) || blank(lastRune(s)) {
		return Errorf(InvalidRequest, "agent id begins or ends with a character that does not show")
	}
	return nil
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}

func firstRune(s string) rune {
	for _, r := range s {
		return r
	}
	return 0
}

func lastRune(s string) (last rune) {
	for _, r := range s {
		last = r
	}
	return last
}

// blank reports whether a printable character looks like a space: letters and patterns of dots without a form.
func blank(r rune) bool {
	return r == '\u2800' || unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r)
}

// LooksLikeCluster reports whether people could take an id for that of [Cluster]: in whatever case, with marks, and
// with letters and digits of other scripts that look like its own.
func LooksLikeCluster(s string) bool {
	if len(s) < len(Cluster) {
		return false
	}
	if isASCII(s) && len(s) > 4*len(Cluster) {
		return false // it has more than marks between
	}
	seen := 0
	for _, r := range norm.NFKD.String(s) {
		letter := likeOf(r)
		switch {
		case letter == 0:
			continue
		case seen == len(Cluster) || letter != rune(Cluster[seen]):
			return false
		}
		seen++
	}
	return seen == len(Cluster)
}

// likeOf returns which letter of the cluster's id a character looks like; 0 for what is no letter and no digit, and the
// character itself for any other.
func likeOf(r rune) rune {
	switch {
	case 0x1f130 <= r && r < 0x1f18a: // letters in squares and circles
		r = 'a' + (r-0x1f130)%32
	case 0x1f1e6 <= r && r <= 0x1f1ff: // those of which flags are made
		r = 'a' + r - 0x1f1e6
	}
	for _, letter := range "agor" {
		if strings.ContainsRune(alike[letter], r) {
			return letter
		}
	}
	if unicode.IsLetter(r) && !blank(r) || unicode.IsDigit(r) {
		return r
	}
	return 0
}

// alike is what looks like each letter of the cluster's id, of Unicode's list of confusable characters (UTS 39), as far
// as compatibility (NFKD) does not lead there.
var alike = map[rune]string{
	'a': "aAαΑаАɑᴀꭺᎪꓮᗅ⍺𐊠𖽀ⱥȺ∂ạ",
	'g': "gGɡɢցᶃԍԌᏀꮐᏳᏻꓖƍɠƓǥǤℊ9",
	'o': "oOοΟоОօՕסهہەھഠဝჿⲟⲞᴏᴑꬽⵔꓳ𐊒𐊫𐐄𐐬𐓂𐓪〇○◯σϭㅇᄋøØ0٠٥۵߀०০੦૦୦௦౦೦൦๐໐၀០᠐",
	'r': "rRгГᴦꭇꭈꮁⲅⲄʀᎡᏒᖇꓣƦɼɽɾɍɌґҐ𐒴𖼵ᚱ",
}

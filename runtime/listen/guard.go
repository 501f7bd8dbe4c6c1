package listen

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strings"
)

// Guard passes a handler only those requests that address the server by one of its own names. It rejects requests of browsers for pages of another
// origin, both cross-origin requests and those by DNS rebinding. host is the configured name of the server. Responses may not be embedded in frames
// or in other pages.
func Guard(host string, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("X-Frame-Options", "DENY")
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("Cross-Origin-Resource-Policy", "same-origin")
		switch {
		case foreign(r):
			http.Error(w, "a page of another origin may not ask this", http.StatusForbidden)
		case browser(r) && !own(r.Host, host):
			http.Error(w, "unknown host name: use the machine's address, or its name", http.StatusMisdirectedRequest)
		default:
			h.ServeHTTP(w, r)
		}
	})
}

// browser reports whether a browser sent the request, by headers that the Fetch standard requires of browsers and that other programs do not send.
func browser(r *http.Request) bool {
	return r.Header.Get("Origin") != "" || r.Header.Get("Sec-Fetch-Site") != "" || strings.HasPrefix(r.UserAgent(), "Mozilla/")
}

// foreign reports whether a page of another origin sent the request. It returns false for a link that a user follows from such a page.
func foreign(r *http.Request) bool {
	if origin := r.Header.Get("Origin"); origin != "" {
		u, err := url.Parse(origin)
		return err != nil || u.Host != r.Host
	}
	site := r.Header.Get("Sec-Fetch-Site")
	follows := r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document"
	return (site == "cross-site" || site == "same-site") && !follows
}

// own reports whether asked, as HOST or HOST:PORT, names this machine: an IP address, to which DNS rebinding does not apply, the system's host name,
// or host.
func own(asked, host string) bool {
	name := asked
	if h, _, err := net.SplitHostPort(asked); err == nil {
		name = h
	}
	name = strings.TrimSuffix(strings.ToLower(strings.Trim(name, "[]")), ".")
	if _, err := netip.ParseAddr(name); err == nil || name == "localhost" || name == strings.ToLower(host) {
		return true
	}
	full, _ := os.Hostname()
	full = strings.ToLower(full)
	short, _, _ := strings.Cut(full, ".")
	return full != "" && (name == full || name == short || name == short+".local")
}

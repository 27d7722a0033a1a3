package identity

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/oauth2"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

const (
	// tokenReread is how often the token file is looked at for a newer token.
	tokenReread = time.Minute
	// serviceAccountPrefix begins the subject of a service account's token: NAMESPACE:NAME follows.
	serviceAccountPrefix = "system:serviceaccount:"
)

// token is a token, and what it says of itself. One that is not a service account's says nothing: it is used as it is.
type token struct {
	text            string
	namespace, name string // of the service account
	issued, expires time.Time
}

// parseToken reads what a token says of itself. It is not verified: the hub does that, and here it only tells when to renew.
func parseToken(text string) *token {
	t := &token{text: text}
	parts := strings.Split(text, ".")
	if len(parts) != 3 {
		return t
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return t
	}
	var claims struct {
		Subject   string  `json:"sub"`
		IssuedAt  float64 `json:"iat"`
		ExpiresAt float64 `json:"exp"`
	}
	if json.Unmarshal(payload, &claims) != nil || claims.ExpiresAt <= claims.IssuedAt {
		return t
	}
	account, ok := strings.CutPrefix(claims.Subject, serviceAccountPrefix)
	if !ok {
		return t
	}
	t.namespace, t.name, _ = strings.Cut(account, ":")
	t.issued, t.expires = time.Unix(int64(claims.IssuedAt), 0), time.Unix(int64(claims.ExpiresAt), 0)
	return t
}

// renewable tells whether the token is one that a service account can replace by another of its own.
func (t *token) renewable() bool { return t.name != "" }

func (t *token) renewAt() time.Time { return t.issued.Add(t.expires.Sub(t.issued) * 2 / 3) }

// supersedes tells whether the token is to be used instead of another one: it is of somebody else, or lives longer.
func (t *token) supersedes(other *token) bool {
	switch {
	case other == nil:
		return true
	case t.text == other.text:
		return false
	case !t.renewable() || !other.renewable() || t.namespace != other.namespace || t.name != other.name:
		return true
	default:
		return t.expires.After(other.expires)
	}
}

// tokens is the source of the token that requests carry.
type tokens struct{ current atomic.Pointer[token] }

// Token returns the current token.
func (t *tokens) Token() (*oauth2.Token, error) {
	current := t.current.Load()
	if current == nil {
		return nil, errors.New("there is no token yet")
	}
	return &oauth2.Token{AccessToken: current.text, TokenType: "Bearer"}, nil
}

// takeToken takes the token file's token into use, or the one that was made here for the same account, if that lives longer.
func (i *Identity) takeToken(ctx context.Context) error {
	text, err := readToken(i.TokenFile)
	if err != nil {
		return err
	}
	given := parseToken(text)
	i.tokenGiven = []byte(text)
	i.tokens.current.Store(given)
	if !given.renewable() {
		return nil
	}
	credentials, err := i.Store.Load(ctx)
	if err != nil {
		i.tell("uses the token of the token file", err) // which is good for a while
		return nil
	}
	i.credentials = credentials
	made := parseToken(string(credentials.Token))
	if made.renewable() && made.namespace == given.namespace && made.name == given.name && made.supersedes(given) {
		i.tokens.current.Store(made)
	}
	return nil
}

// keepToken takes up newer tokens from the file, and renews the token of a service account when two thirds of its life are
// over. It returns when ctx ends.
func (i *Identity) keepToken(ctx context.Context) {
	next, pause := i.tokens.current.Load().renewAt(), shortestRenewal
	for ctx.Err() == nil {
		current := i.tokens.current.Load()
		wait := tokenReread
		if current.renewable() {
			wait = min(wait, max(next.Sub(i.Clock.Now()), 0))
		}
		select {
		case <-ctx.Done():
			return
		case <-i.Clock.After(wait):
		}
		if i.rereadToken() {
			next, pause = i.tokens.current.Load().renewAt(), shortestRenewal
			continue
		}
		if !current.renewable() || i.Clock.Now().Before(next) {
			continue
		}
		if err := i.renewToken(ctx, current); err != nil {
			i.tell("cannot renew the token, which expires at "+current.expires.UTC().Format(time.RFC3339), err)
			next = i.Clock.Now().Add(pause)
			pause = min(2*pause, longestRenewal)
			continue
		}
		// Were the agent's clock far ahead of the hub's, the new one would be due at once as well.
		fresh := i.tokens.current.Load()
		next, pause = fresh.renewAt(), shortestRenewal
		if soonest := i.Clock.Now().Add(fresh.expires.Sub(fresh.issued) / 10); next.Before(soonest) {
			next = soonest
		}
	}
}

// rereadToken takes the token in the file into use, if that is another one than before, and tells whether it did.
func (i *Identity) rereadToken() bool {
	content, err := os.ReadFile(i.TokenFile)
	content = bytes.TrimSpace(content)
	if err != nil || len(content) == 0 || bytes.Equal(content, i.tokenGiven) {
		return false
	}
	i.tokenGiven = content
	given := parseToken(string(content))
	if !given.supersedes(i.tokens.current.Load()) {
		return false
	}
	i.tokens.current.Store(given)
	i.Log.Info("has a new token from the token file")
	return true
}

// renewToken has the hub make a new token for the agent's own account, with a life as long as that of the present one.
func (i *Identity) renewToken(ctx context.Context, current *token) error {
	hub, err := i.hub(i.Config())
	if err != nil {
		return err
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: current.namespace, Name: current.name}}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		ExpirationSeconds: ptr.To(int64(current.expires.Sub(current.issued) / time.Second)),
	}}
	err = hub.SubResource("token").Create(ctx, account, request)
	switch {
	case apierrors.IsForbidden(err):
		return fmt.Errorf("put a new token into %s, or let service account %s/%s create serviceaccounts/token of itself on the hub: %w",
			i.TokenFile, current.namespace, current.name, err)
	case err != nil:
		return fmt.Errorf("ask the hub for a token of service account %s/%s: %w", current.namespace, current.name, err)
	}
	fresh := parseToken(request.Status.Token)
	if !fresh.renewable() {
		return errors.New("the hub's answer is of no use: it is no token of a service account")
	}
	i.tokens.current.Store(fresh)
	next := *i.credentials
	next.Token = []byte(fresh.text)
	if err := i.save(ctx, next); err != nil {
		i.tell("cannot keep the new token over a restart", err)
	}
	i.Log.Info("has a new token", "serviceAccount", fresh.namespace+"/"+fresh.name, "until", fresh.expires.UTC().Format(time.RFC3339))
	return nil
}

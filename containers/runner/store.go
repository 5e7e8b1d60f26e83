package main

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	usualAttempts = 10 // of each request, unless AWS_MAX_ATTEMPTS says otherwise
	firstWait     = 200 * time.Millisecond
	longestWait   = 20 * time.Second
)

// store is S3 as one task sees it: how a request is sent, signed, repeated, and what a refusal means.
type store struct {
	client   *http.Client
	endpoint *url.URL // nil: AWS's own
	region   string
	keys     *credentials
	attempts int
	broken   error // what is wrong with the environment; said when S3 is needed

	guard   sync.Mutex
	regions map[string]string // of the buckets that lie elsewhere
}

func newStore(environment []string) *store {
	made := &store{
		region:   variable(environment, "AWS_REGION"),
		keys:     &credentials{environment: environment},
		attempts: usualAttempts,
		regions:  map[string]string{},
	}
	if made.region == "" {
		made.region = variable(environment, "AWS_DEFAULT_REGION")
	}
	if made.region == "" {
		made.region = "us-east-1"
	}
	if given, err := strconv.Atoi(variable(environment, "AWS_MAX_ATTEMPTS")); err == nil && given > 0 {
		made.attempts = given
	}
	place := variable(environment, "AWS_ENDPOINT_URL_S3")
	if place == "" {
		place = variable(environment, "AWS_ENDPOINT_URL")
	}
	if place != "" {
		at, err := url.Parse(strings.TrimRight(place, "/"))
		if err != nil || at.Host == "" || at.Scheme != "http" && at.Scheme != "https" {
			made.broken = wrong("the endpoint of S3 is no address: %q", place)
		}
		made.endpoint = at
	}
	roots, err := ownRoots(environment)
	if err != nil {
		made.broken = err
	}
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	made.client = &http.Client{Transport: newTransport(roots), CheckRedirect: stay}
	return made
}

// rest closes connections that will not be needed for a while.
func (s *store) rest() { s.client.CloseIdleConnections() }

// request is one call of S3. reader: nil = no body; it is called for each attempt. subject and verb are for sentences.
type request struct {
	method  string
	at      address
	query   map[string]string
	headers map[string]string
	reader  func() io.Reader
	length  int64
	digest  string // of the body
	subject string // "the input s3://..."
	verb    string // "read"

	isCompletion bool // of an upload in parts
}

// errAlreadyThere: a condition of the request does not hold.
var errAlreadyThere = errors.New("a condition does not hold")

// errConflict: something else was written there just now, and the upload in parts has to begin again.
var errConflict = errors.New("a conflict with another upload")

// passingError is worth another try.
type passingError struct{ said string }

func (p passingError) Error() string { return p.said }

func passing(form string, values ...any) error { return passingError{fmt.Sprintf(form, values...)} }

// do sends the request until it works, as often as is allowed. `made` is called for each attempt, `read` for its
// answer: a failure that it returns ends everything, any other error is a try that failed.
func (s *store) do(ctx context.Context, made func() request, read func(*http.Response) error) error {
	for attempt := 1; ; attempt++ {
		asked := made()
		err := s.once(ctx, asked, read)
		var again passingError
		if !errors.As(err, &again) {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if attempt >= s.attempts {
			return temporary("%s could not be %s: %s", asked.subject, asked.verb, again.said)
		}
		if err := pause(ctx, attempt); err != nil {
			return err
		}
	}
}

// pause waits after the given number of attempts.
func pause(ctx context.Context, attempts int) error {
	longest := min(longestWait, firstWait<<min(attempts, 10))
	select {
	case <-time.After(rand.N(longest)):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// once sends it once; a bucket that turns out to lie in another region is asked there.
func (s *store) once(ctx context.Context, asked request, read func(*http.Response) error) error {
	region := s.regionOf(asked.at.bucket)
	for {
		response, err := s.send(ctx, asked, region)
		if err != nil {
			return err
		}
		elsewhere := response.Header.Get("X-Amz-Bucket-Region")
		if movedStatus[response.StatusCode] && elsewhere != "" && elsewhere != region && s.moved(asked.at.bucket, elsewhere) {
			discard(response)
			region = elsewhere
			continue
		}
		defer discard(response)
		if response.StatusCode < 300 {
			err = read(response)
			var known *failure
			if err == nil || errors.As(err, &known) {
				return err
			}
			return passing("%v", err)
		}
		return s.refusal(asked, response)
	}
}

var movedStatus = map[int]bool{301: true, 307: true, 400: true}

func (s *store) regionOf(bucket string) string {
	s.guard.Lock()
	defer s.guard.Unlock()
	if region, known := s.regions[bucket]; known {
		return region
	}
	return s.region
}

// moved is false if the bucket has moved already: it is followed once.
func (s *store) moved(bucket, region string) bool {
	s.guard.Lock()
	defer s.guard.Unlock()
	before, known := s.regions[bucket]
	s.regions[bucket] = region
	return !known || before == region
}

func (s *store) send(ctx context.Context, asked request, region string) (*http.Response, error) {
	if s.broken != nil {
		return nil, s.broken
	}
	with, err := s.keys.get(ctx)
	if err != nil {
		return nil, err
	}
	sent, err := http.NewRequestWithContext(ctx, asked.method, "http://unset", nil)
	if err != nil {
		return nil, err
	}
	sent.URL = s.place(asked, region)
	sent.Host = sent.URL.Host
	digest := emptyDigest
	if asked.reader != nil && asked.length > 0 {
		sent.Body, sent.ContentLength, digest = io.NopCloser(asked.reader()), asked.length, asked.digest
		sent.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(asked.reader()), nil }
	} else if asked.reader != nil {
		sent.Body = http.NoBody
	}
	for name, value := range asked.headers {
		sent.Header.Set(name, value)
	}
	sent.Header.Set("User-Agent", "argosy-runner/"+protocol)
	sign(sent, with, region, digest, time.Now())
	response, err := s.client.Do(sent)
	if err != nil {
		var about *url.Error
		if errors.As(err, &about) {
			err = about.Err // without the address, which the sentence has
		}
		return nil, passing("%v", err)
	}
	return response, nil
}

// place: with an endpoint of its own, and for buckets whose names are no names of hosts, the bucket is in the path.
func (s *store) place(asked request, region string) *url.URL {
	at := url.URL{Scheme: "https", RawQuery: query(asked.query)}
	path := "/" + asked.at.bucket + "/" + asked.at.key
	domain := "amazonaws.com"
	if strings.HasPrefix(region, "cn-") {
		domain += ".cn"
	}
	switch {
	case s.endpoint != nil:
		at.Scheme, at.Host = s.endpoint.Scheme, s.endpoint.Host
		path = s.endpoint.Path + path
	case strings.ContainsAny(asked.at.bucket, "._") || strings.ToLower(asked.at.bucket) != asked.at.bucket:
		at.Host = "s3." + region + "." + domain
	default:
		at.Host = asked.at.bucket + ".s3." + region + "." + domain
		path = "/" + asked.at.key
	}
	at.Path, at.RawPath = path, escaped(path, "/")
	return &at
}

// hopelessCodes: refusals that look like a missing right and do not pass. An object in an archive has to be restored.
var hopelessCodes = map[string]bool{"InvalidObjectState": true}

var passingStatus = map[int]bool{408: true, 409: true, 429: true}

// Credentials that have expired are asked for again.
var expiredCodes = map[string]bool{"ExpiredToken": true, "InvalidToken": true, "TokenRefreshRequired": true}

// These codes are no fault of the request: another try, or another instance, may do better.
var passingCodes = map[string]bool{"RequestTimeout": true, "RequestTimeTooSkewed": true, "SlowDown": true}

func (s *store) refusal(asked request, response *http.Response) error {
	if response.StatusCode == http.StatusPreconditionFailed {
		return errAlreadyThere
	}
	code, said := faultIn(response)
	status := response.StatusCode
	if status == http.StatusConflict && asked.isCompletion {
		return errConflict
	}
	if expiredCodes[code] {
		s.keys.forget()
		return passing("%s", said)
	}
	if status >= 500 || passingStatus[status] || passingCodes[code] {
		return passing("%s", said)
	}
	form := "%s could not be %s: %s"
	if status == http.StatusForbidden && !hopelessCodes[code] {
		return temporary(form, asked.subject, asked.verb, said)
	}
	return wrong(form, asked.subject, asked.verb, said)
}

// faultIn is the code of S3's answer, and code and message as they are shown.
func faultIn(response *http.Response) (string, string) {
	var fault struct {
		Code    string
		Message string
	}
	text, _ := io.ReadAll(io.LimitReader(response.Body, 64<<10))
	if xml.Unmarshal(text, &fault) != nil || fault.Code == "" {
		return "", response.Status
	}
	return fault.Code, strings.TrimSpace(fault.Code + " " + fault.Message)
}

// discard so that the connection can be used again, unless much is left.
func discard(response *http.Response) {
	_, _ = io.CopyN(io.Discard, response.Body, 64<<10)
	_ = response.Body.Close()
}

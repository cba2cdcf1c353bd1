package grpcmw

import (
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/internal/wire/grpcwire"
)

// declaredSafety returns what the idempotency_level of the method's registered
// descriptor says about repeating it.
func declaredSafety(method string) call.Safety {
	// The form comes first: the registry would take a dot for the second slash.
	service, name, ok := strings.Cut(strings.TrimPrefix(method, "/"), "/")
	if !ok || !grpcwire.IsService(service) || !grpcwire.IsWord(name) {
		return call.SafetyUnknown
	}
	m, ok := lookUp(service + "." + name).(protoreflect.MethodDescriptor)
	if !ok {
		return call.SafetyUnknown
	}
	options, ok := m.Options().(*descriptorpb.MethodOptions)
	if !ok {
		return call.SafetyUnknown
	}
	switch options.GetIdempotencyLevel() {
	case descriptorpb.MethodOptions_NO_SIDE_EFFECTS:
		return call.ReadOnly
	case descriptorpb.MethodOptions_IDEMPOTENT:
		return call.Idempotent
	}
	return call.SafetyUnknown
}
